// The failover: what it needs, and what is left of the buyers' receipts.
import { ask, complain, signed } from "./post.js";
import { t, translate } from "./text.js";

const view = document.getElementById("failover");
const [kill, end, status, receipts] = [".kill", ".end", ".said", ".pair"].map((part) => view.querySelector(part));
let running = null; // what ends it
let possible = false;
let busy = false; // the lab, perhaps for another tab

export function wireFailover() {
  kill.addEventListener("click", () => { if (kill.getAttribute("aria-disabled") !== "true") begin(); });
  end.addEventListener("click", () => running?.abort());
}

// openFailover says before the first click what is missing.
export async function openFailover() {
  if (running) return;
  try {
    await signed(view, ask("/failover"));
    possible = true;
    complain(view, null);
  } catch (problem) {
    possible = false;
    complain(view, problem);
  }
  allow();
}

export function showBusy(is) {
  busy = is;
  allow();
}

function allow() {
  kill.setAttribute("aria-disabled", String(running !== null || !possible || busy));
  if (running === null) status.textContent = busy ? t("The lab is busy, perhaps for another tab.") : "";
  end.setAttribute("aria-disabled", String(running === null));
}

async function begin() {
  running = new AbortController();
  allow();
  complain(view, null);
  receipts.replaceChildren();
  const began = Date.now();
  const ticking = setInterval(() => {
    status.textContent = t("{n} seconds so far", { n: Math.round((Date.now() - began) / 1000) });
  }, 1000);
  try {
    receipts.innerHTML = (await ask("/failover", {}, running.signal)).html; // the lab has escaped what is in it
    translate(receipts);
  } catch (problem) {
    if (!running.signal.aborted) complain(view, problem);
  }
  clearInterval(ticking);
  running = null;
  allow();
}
