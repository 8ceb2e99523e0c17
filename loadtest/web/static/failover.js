// What is left of the buyers' receipts when a primary was killed.
import { ask, complain } from "./post.js";
import { t, translate } from "./text.js";

export function wireFailover() {
  const view = document.getElementById("failover");
  const [button, status, receipts] = ["button", "[role=status]", ".pair"].map((part) => view.querySelector(part));
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true");
    complain(view, null);
    receipts.replaceChildren();
    const began = Date.now();
    const ticking = setInterval(() => {
      const n = Math.round((Date.now() - began) / 1000);
      status.textContent = t("{n} seconds so far", { n });
    }, 1000);
    try {
      receipts.innerHTML = (await ask("/failover", {})).html; // the lab has escaped what is in it
      translate(receipts);
    } catch (problem) {
      complain(view, problem);
    }
    clearInterval(ticking);
    status.textContent = "";
    button.setAttribute("aria-disabled", "false");
  });
}
