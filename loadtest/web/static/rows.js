// A row for each strategy: its bar climbs while the race goes on.
import { chosen, describe, supply } from "./form.js";
import { t } from "./text.js";
import { calm } from "./views.js";

const list = document.getElementById("rows");
const row = document.getElementById("row");
const number = new Intl.NumberFormat("en");
let begun = false;

// preview shows the chosen strategies before the first run.
export function preview() {
  if (begun) return;
  document.querySelector(".key.live").hidden = false;
  show(chosen().map((box) => ({ name: box.value, phase: "chosen", orders: 0 })), supply());
}

export function showRows(/** @type {State} */ state) {
  begun = state.run > 0;
  if (!begun) return preview(); // a lab that has just been started
  document.querySelector(".key.live").hidden = state.result;
  // Races that are over are shown in the result.
  const { stock, buyers } = state.choice;
  show(state.races.filter((r) => !(state.result && r.phase === "done")), stock, buyers);
}

function show(/** @type {Race[]} */ races, supplied, buyers) {
  const most = Math.max(supplied * 1.15, ...races.map((r) => r.orders)); // room beyond the line of the supply
  while (list.children.length > races.length) list.lastElementChild.remove();
  races.forEach((race, i) => {
    if (!list.children[i]) list.append(row.content.cloneNode(true));
    fill(list.children[i], race, supplied, most, buyers);
  });
  list.hidden = races.length === 0;
}

function fill(item, /** @type {Race} */ race, supplied, most, buyers) {
  const before = { name: item.dataset.name, orders: Number(item.dataset.orders), left: Number(item.dataset.left) };
  const left = race.available ?? (race.orders > 0 ? undefined : supplied); // what the stock column says
  Object.assign(item.dataset, { name: race.name, orders: race.orders, left });
  const { lesson, designed } = describe(race.name);
  const over = race.orders - supplied;
  text(item, ".name strong", race.name);
  text(item, ".designed", designed ? t("designed to be correct") : t("broken on purpose"));
  text(item, ".lesson", t(lesson));
  text(item, ".word", word(race, over, buyers));
  item.querySelector(".word").className = `word ${over > 0 || race.phase === "failed" ? "bad" : ""}`;
  const sold = t("{sold} sold of {units}", { sold: number.format(race.orders), units: number.format(supplied) });
  text(item, ".units", race.phase === "chosen" ? t("{n} for sale", { n: number.format(supplied) }) : sold + rest(race));

  text(item, ".left", race.phase === "chosen" || left === undefined ? "" : t("stock column: {n} left", { n: number.format(left) }));

  const share = (n) => `${(99 * n / most).toFixed(2)}%`;
  const line = share(supplied);
  draw(item, ".sold", 0, share(Math.min(race.orders, supplied)));
  draw(item, ".over", line, share(Math.max(0, over)));
  draw(item, ".hatch", line, share(Math.max(0, over)));
  draw(item, ".supplied", 0, line);
  draw(item, ".shelf", 0, share(left ?? 0));
  if (before.name === race.name) fly(item, before, race.orders, supplied, (n) => n / most * 0.99);
  item.querySelector(".line").setAttribute("x", line);
  item.querySelector(".bar").setAttribute("aria-label", t("{who}: ", { who: race.name }) + sold);
}

// fly takes units from the shelf, which is what the stock column has, to the buyers: at most six for an event. Units beyond the
// supply leave the same shelf, that is the mistake.
function fly(item, before, orders, supplied, share) {
  const sold = Math.min(6, orders - before.orders);
  if (calm.matches) return;
  const bar = item.querySelector(".bar");
  for (let i = 0; i < sold; i++) {
    const unit = document.createElementNS(bar.namespaceURI, "rect");
    const [from, to] = [share(before.left), share(before.orders + (i + 1) / sold * (orders - before.orders))].map((x) => x * bar.clientWidth - 10);
    unit.setAttribute("class", orders > supplied ? "unit beyond" : "unit");
    for (const [name, value] of Object.entries({ x: Math.max(0, from), y: 42, width: 10, height: 10 })) unit.setAttribute(name, String(value));
    bar.append(unit);
    unit.animate([{}, { transform: `translate(${to - Math.max(0, from)}px, -29px)` }], { duration: 350, delay: 60 * i, easing: "ease-in-out" })
      .finished.finally(() => unit.remove());
  }
}

function word(/** @type {Race} */ race, over, buyers) {
  const n = number.format(over);
  switch (race.phase) {
    case "chosen": return "";
    case "waiting": return t("waiting");
    case "opening": return t("starting shops");
    case "connecting": return t("{n} of {all} connected", { n: number.format(race.connected), all: number.format(buyers) });
    case "checking": return over > 0 ? t("over by {n}, auditing", { n }) : t("auditing");
    case "failed": return t("failed: {why}", { why: race.failure });
    case "stopped": return t("stopped");
    case "done": return over > 0 ? t("oversold by {n}", { n }) : t("done");
  }
  return over > 0 ? t("over by {n}", { n }) : t("racing");
}

function rest(/** @type {Race} */ { refused, errors }) {
  const told = (n, what) => n > 0 ? t(", ") + t(what, { n: number.format(n) }) : "";
  return told(refused, "{n} refused") + told(errors, "{n} errors");
}

function text(item, selector, value) {
  const element = item.querySelector(selector);
  if (element.textContent !== value) element.textContent = value;
}

function draw(item, selector, x, width) {
  const rect = item.querySelector(selector);
  rect.setAttribute("x", x);
  rect.setAttribute("width", width);
}
