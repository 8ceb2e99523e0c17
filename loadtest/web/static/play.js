// Step by step: what to play, and the play once it is over.
import { clear, post } from "./post.js";
import { show } from "./walk.js";

const form = document.getElementById("casting");
const status = document.getElementById("play-status");
const button = document.getElementById("go");

export function wirePlay() {
  form.elements.strategy.addEventListener("change", choose);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (button.getAttribute("aria-disabled") !== "true") play();
  });
  choose();
}

// choose offers the scenarios that apply to the strategy, and the one that it fails.
function choose() {
  const strategy = form.elements.strategy.value;
  const radios = [...form.querySelectorAll("input[name=scenario]")];
  for (const radio of radios) {
    const excuse = JSON.parse(radio.dataset.excuses)?.[strategy] ?? "";
    radio.disabled = excuse !== "";
    radio.closest(".scenario").classList.toggle("off", radio.disabled);
    radio.closest(".scenario").querySelector(".excuse").textContent = excuse && `Does not apply: ${excuse}.`;
  }
  const able = radios.filter((r) => !r.disabled);
  const fails = able.find((r) => JSON.parse(r.dataset.fails)?.includes(strategy));
  const best = fails ?? able.find((r) => r.checked) ?? able[0];
  if (best) best.checked = true;
}

async function play() {
  clear(form);
  button.setAttribute("aria-disabled", "true");
  status.textContent = "Playing: a few seconds.";
  const answer = await post("/play", {
    strategy: form.elements.strategy.value,
    scenario: form.elements.scenario.value,
  }, form);
  button.setAttribute("aria-disabled", "false");
  status.textContent = "";
  if (answer) show(await answer.json());
}
