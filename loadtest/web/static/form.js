// The form of a race: what is chosen.
import { clear, post } from "./post.js";
import { t } from "./text.js";

const form = document.getElementById("choice");
const run = document.getElementById("run");
const stop = document.getElementById("stop");
const others = document.getElementById("others");

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
  form.addEventListener("input", () => {
    clear(form); // what was wrong may be right by now
    count();
    onChange();
  });
  document.getElementById("every").addEventListener("click", () => tick(true));
  document.getElementById("none").addEventListener("click", () => tick(false));
  count();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (run.getAttribute("aria-disabled") !== "true") begin();
  });
  stop.addEventListener("click", () => {
    if (stop.getAttribute("aria-disabled") !== "true") post("/stop", {}, form);
  });
}

// tick chooses all of the other strategies but those with a note, or none.
function tick(chosen) {
  for (const box of others.querySelectorAll("input:enabled")) box.checked = chosen && !box.hasAttribute("aria-describedby");
  form.dispatchEvent(new Event("input"));
}

// count says how many of the other strategies are chosen, which may be folded.
function count() {
  const n = others.querySelectorAll(":checked").length;
  others.querySelector("summary span").textContent = n > 0 ? t("{n} chosen", { n }) : "";
}

// showRunning disables by ARIA alone: both buttons keep the focus and their place in the tab order. A lab that is busy with
// other work, perhaps for another tab, begins no race.
export function showRunning(running, busy) {
  run.setAttribute("aria-disabled", String(busy));
  stop.setAttribute("aria-disabled", String(!running));
}

const numbers = ["buyers", "stock", "instances", "think_ms"];

// placeOf is the place of a choice in this view: a link that fills in the form, and runs nothing.
export function placeOf(/** @type {Choice} */ choice) {
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
  others.open ||= others.querySelector(":checked") !== null;
  form.dispatchEvent(new Event("input"));
}

async function begin() {
  clear(form);
  run.setAttribute("aria-disabled", "true");
  const number = (name) => Number(form.querySelector(`[name=${name}]`)?.value ?? "");
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
