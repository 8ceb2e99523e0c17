// The game: the reader decides whose next step runs, and tries to sell a unit twice.
import { Board, actor, said } from "./board.js";
import { ask, complain } from "./post.js";
import { t } from "./text.js";
import { autoplay, keepPlace, onKeys } from "./views.js";

const at = (id) => document.getElementById(id);
const [view, strategy, units, faults, how, end, undo, explore] =
  ["game", "game-strategy", "game-units", "faults", "game-how", "game-end", "undo", "explore"].map(at);
const board = new Board(at("game-boards"), byHand);
const remedy = new Board(at("game-boards"));
const play = autoplay("game", async () => {
  await (work = work.then(byItself));
  return position && !position.over;
});
const tried = {}; // names of finished schedules, by choice
const explored = {}; // what all of them come to, by choice

let position; // where the game is
let names = ["A", "B"];
let pending = ""; // x or t, until a letter follows
let work = Promise.resolve(); // one act after the other
let exploring = Promise.resolve(); // one choice after the other
let lessons;

// allowFaults lets processes die and locks run out in the next game.
export function allowFaults(allow) {
  faults.checked = allow;
}

// openGame opens a game at a schedule, or goes on with the one that is open.
export async function openGame(schedule) {
  if (schedule === "" && position) return keepPlace("game", position.schedule);
  play.stop();
  const [what, letters = ""] = (schedule || start()).split(":");
  [strategy.value, units.value] = `${what}*1`.split("*");
  faults.checked ||= /[xtw]/.test(letters);
  names = buyers(letters);
  await (work = work.then(() => to(`${what}:${letters}`)));
}

// start is the schedule of a new game.
function start() {
  return units.value === "1" ? `${strategy.value}:` : `${strategy.value}*${units.value}:`;
}

// buyers are one more than units, at least.
function buyers(letters = "") {
  return units.value === "1" && !/c/i.test(letters) ? ["A", "B"] : ["A", "B", "C"];
}

// isChosen reports whether a position is of the choice that the reader has made last.
function isChosen(shown) {
  return shown.schedule.startsWith(start());
}

// choice is what schedules are counted by.
function choice() {
  return `${start()}${faults.checked}`;
}

// to plays a schedule as far as its name says.
async function to(name) {
  try {
    position = await ask("/schedule", { name });
    complain(view, null);
    if (isChosen(position)) show(position); // or another choice waits for its turn
  } catch (problem) {
    play.stop();
    complain(view, problem);
  }
}

function show(shown) {
  if (shown.buyers.length < names.length && shown.acts.includes("B")) { // C has not come by now
    shown.next.push("C");
    shown.over = false;
  }
  if (!faults.checked) shown.next = shown.next.filter((act) => act.length === 1);
  keepPlace("game", shown.schedule);
  board.show(shown, shown.schedule, names);
  at("game-said").textContent = shown.acts.length > 0 ? said(shown) : t("A begins: the buyers are alike.");
  undo.setAttribute("aria-disabled", String(shown.acts.length === 0));
  end.hidden = !shown.over;
  remedy.root.hidden = true;
  if (shown.over) {
    (tried[choice()] ??= new Set()).add(shown.schedule);
    conclude(shown).catch((problem) => complain(view, problem));
  }
  showTried();
}

// conclude says what the game has come to. A schedule that failed is played with a remedy, too.
async function conclude(shown) {
  const [verdict, short] = [".verdict", ".shortest"].map((part) => end.querySelector(part));
  const values = { ...shown, n: shown.acts.length };
  verdict.classList.toggle("good", !shown.passed);
  verdict.textContent = shown.passed ? t("Each unit was sold once, and no buyer waits for ever. Try another schedule.")
    : shown.sold > shown.units ? t("Found it: {sold} sold of {units}, in {n} steps.", values)
      : t("Found it: {sold} sold of {units}, and no more will be, after {n} steps.", values);
  end.querySelector(".why").textContent = t(shown.why);
  end.querySelector(".reason").hidden = shown.passed;
  short.replaceChildren();
  if (shown.passed) return;
  const still = () => shown === position && isChosen(shown);
  lessons ??= await ask("/lessons");
  await remedy.showRemedy(shown.schedule, lessons.find(({ name }) => name === shown.strategy)?.remedy ?? "redis", still);
  const all = still() && await exploreAll();
  if (all?.failed.length > 0 && still()) short.replaceChildren(...shortest(all));
}

function shortest(all) {
  const link = Object.assign(document.createElement("a"), { href: `#game/${all.failed[0]}`, textContent: all.failed[0] });
  return [`${t("The shortest schedule that fails:")} `, link];
}

// exploreAll lets the lab play all schedules of the choice, once.
function exploreAll() {
  const [chosen, one, asked] = [choice(), units.value === "1", { strategy: strategy.value, crash: faults.checked }];
  return exploring = exploring.then(async () => {
    if (!one || explored[chosen]) return explored[chosen];
    at("tried").textContent = t("All schedules are being played.");
    try {
      explored[chosen] = await ask("/explore", asked);
    } catch (problem) {
      complain(view, problem);
    }
    showTried();
    return explored[chosen];
  });
}

function showTried() {
  const mine = tried[choice()] ?? new Set();
  const all = explored[choice()];
  explore.hidden = Boolean(all) || units.value !== "1";
  if (!all) {
    at("tried").textContent = t("Schedules tried: {n}.", { n: mine.size });
    return;
  }
  const n = all.schedules.filter((name) => mine.has(name)).length;
  const values = { ...all, n, all: all.schedules.length, others: mine.size - n };
  at("tried").replaceChildren(
    mine.size > n ? t("You tried {n} of {all}, and {others} that switch more often.", values) : t("You tried {n} of {all}.", values), " ",
    t("All {all} with at most two switches: {oversold} oversell, {undersold} leave a unit unsold or a buyer waiting.", values), " ",
    all.designed || all.failed.length > 0 || faults.checked ? "" : t("What this strategy does wrong shows only where processes die or locks run out."), " ",
    ...(all.failed.length > 0 ? shortest(all) : []));
}

// byHand does an act of the reader's, once those before it are done.
function byHand(act) {
  play.stop();
  work = work.then(() => doAct(act));
}

async function doAct(act) {
  const done = position?.acts ?? [];
  if (act === "r" || !position || !isChosen(position)) return to(start());
  const game = `${position.schedule.split(":")[0]}:`;
  if (act === "u") return done.length > 0 && to(game + done.slice(0, -1).join(""));
  if (position.next.includes(act.length > 1 ? act : act.toUpperCase())) return to(game + done.join("") + act);
  at("game-said").textContent = position?.over ? t("This schedule is over: undo, or restart.") : t("{act} is not possible now.", { act });
}

// byItself takes a step of the autoplay. Behind the end, a new schedule begins.
async function byItself() {
  if (!position || position.over) return doAct("r");
  const steps = position.next.filter((act) => act.length === 1);
  const rare = position.acts.some((done) => done.length > 1) ? [] : position.next.filter((act) => act.length > 1);
  const turn = actor(position.acts.at(-1));
  const goesOn = steps.includes(turn) && (how.value === "on" || Math.random() < 0.6);
  const from = rare.length > 0 && Math.random() < 0.1 ? rare : goesOn ? [turn] : steps;
  await doAct(from[Math.floor(Math.random() * from.length)]);
}

export function wireGame() {
  for (const input of [strategy, units, faults]) {
    input.addEventListener("change", () => {
      names = buyers();
      byHand("r");
    });
  }
  undo.addEventListener("click", () => byHand("u"));
  at("restart").addEventListener("click", () => byHand("r"));
  explore.addEventListener("click", () => {
    at("tried").focus();
    exploreAll();
  });
  onKeys("game", (event) => {
    const key = event.key.toLowerCase();
    if (key === " ") play.toggle();
    else if ("abc".includes(key)) byHand(pending ? pending + key : event.shiftKey ? key : key.toUpperCase());
    else if ("ur".includes(key)) byHand(key);
    else if (!"xt".includes(key) || !faults.checked) return false;
    pending = "xt".includes(key) ? key : "";
    if (pending) at("game-said").textContent = t("Whose? a, b or c.");
    return true;
  });
}
