// The form of a race: what is chosen.
import { clear, post } from "./post.js";

const form = document.getElementById("choice");
const run = document.getElementById("run");
const stop = document.getElementById("stop");

// chosen returns the checkboxes of the strategies that are ticked.
export function chosen() {
  return [...form.querySelectorAll("input[name=strategies]:checked")];
}

export function supply() {
  return Math.max(1, Number(form.elements.stock.value) || 1);
}

// describe returns what the table of strategies says of one.
export function describe(name) {
  const box = [...form.querySelectorAll("input[name=strategies]")].find((b) => b.value === name);
  return { lesson: box?.dataset.lesson ?? "", promises: box?.dataset.promises === "true" };
}

export function wireForm(onChange) {
  form.addEventListener("input", onChange);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (run.getAttribute("aria-disabled") !== "true") begin();
  });
  stop.addEventListener("click", () => {
    if (stop.getAttribute("aria-disabled") !== "true") post("/stop", {}, form);
  });
}

// showRunning disables by ARIA alone: both buttons keep the focus and their place in the tab order.
export function showRunning(running) {
  run.setAttribute("aria-disabled", String(running));
  stop.setAttribute("aria-disabled", String(!running));
}

async function begin() {
  clear(form);
  const number = (name) => {
    const field = form.elements[name];
    return field && field.value !== "" ? Number(field.value) : 0;
  };
  const answer = await post("/run", {
    strategies: chosen().map((box) => box.value),
    buyers: number("buyers"),
    stock: number("stock"),
    instances: number("instances"),
    think_ms: number("think_ms"),
    together: form.elements.together.checked,
  }, form);
  const track = document.querySelector(".track");
  const top = track.getBoundingClientRect().top;
  if (answer?.ok && (top < 0 || top > innerHeight / 2)) track.scrollIntoView();
}
