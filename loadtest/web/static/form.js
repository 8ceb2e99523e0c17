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
  return { lesson: box?.dataset.lesson ?? "", designed: box?.dataset.designed === "true" };
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

const numbers = ["buyers", "stock", "instances", "think_ms"];

// placeOf is the place of a choice in this view: a link that fills in the form, and runs nothing.
export function placeOf(choice) {
  return new URLSearchParams(Object.entries(choice));
}

// openRace fills in the form as a link says.
export function openRace(place) {
  const asked = Object.fromEntries(new URLSearchParams(place));
  if (place === "") return;
  for (const box of form.querySelectorAll("input[name=strategies]:enabled")) {
    box.checked = (asked.strategies ?? "").split(",").includes(box.value);
  }
  for (const name of numbers) {
    if (name in asked && form.elements[name]) form.elements[name].value = asked[name];
  }
  form.elements.together.checked = asked.together === "true";
  form.dispatchEvent(new Event("input"));
}

async function begin() {
  clear(form);
  run.setAttribute("aria-disabled", "true");
  const number = (name) => {
    const field = form.elements[name];
    return field && field.value !== "" ? Number(field.value) : 0;
  };
  const begun = await post("/run", {
    strategies: chosen().map((box) => box.value),
    ...Object.fromEntries(numbers.map((name) => [name, number(name)])),
    together: form.elements.together.checked,
  }, form);
  if (!begun) run.setAttribute("aria-disabled", "false");
  const track = document.querySelector(".track");
  const top = track.getBoundingClientRect().top;
  if (begun && (top < 0 || top > innerHeight / 2)) track.scrollIntoView();
}
