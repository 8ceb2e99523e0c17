// The game: the reader decides whose next step runs, and tries to sell a unit twice.
import { Board, actor, said } from "./board.js";
import { ask, complain, follow, signed, unanswered } from "./post.js";
import { gap, t } from "./text.js";
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
const tried = {}; // by choice: the names of finished schedules, and whether each failed
/** @type {Record<string, Exploring>} */
const explored = {}; // what all of them come to, by choice: {found}, or how far that is

/** @type {Position} */
let position; // where the game is
let names = ["A", "B"];
let exploring; // the last exploration: {chosen, ends}
let pending = ""; // x or t, until a letter follows
let work = Promise.resolve(); // one act after the other
/** @type {Lesson[]} */
let lessons;

// openGame opens a game at a schedule, or goes on with the one that is open.
export async function openGame(schedule) {
  if (schedule === "" && position) return keepPlace("game", position.schedule);
  play.stop();
  lessons ??= await ask("/lessons").catch((problem) => void complain(view, problem));
  const [what, letters = ""] = (schedule || start()).split(":");
  [strategy.value, units.value] = `${what}*1`.split("*");
  faults.checked = letters !== "" && faults.checked || needsFaults() || /[xtw]/.test(letters);
  names = buyers(letters);
  abandon();
  await (work = work.then(() => to(`${what}:${letters}`)));
}

// lessonOf is the lesson about the chosen strategy's mistake; none for a right one.
function lessonOf() {
  return lessons?.find((lesson) => lesson.schedule.split(/[*:]/)[0] === strategy.value);
}

function needsFaults() {
  return /[xtw]/.test(lessonOf()?.schedule.split(":")[1] ?? "");
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
function isChosen(/** @type {Position} */ shown) {
  return shown.schedule.startsWith(start());
}

// choice is what schedules are counted by.
function choice() {
  return `${start()}${faults.checked}`;
}

// to plays a schedule as far as its name says.
async function to(name) {
  try {
    position = await signed(view, ask("/schedule", { name }));
    complain(view, null);
    if (isChosen(position)) show(position); // or another choice waits for its turn
  } catch (problem) {
    play.stop();
    complain(view, problem);
  }
}

function show(/** @type {Position} */ shown) {
  if (shown.buyers.length < names.length && shown.acts.includes("B")) { // C has not come by now
    shown.next.push("C");
    shown.over = false;
  }
  if (!faults.checked) shown.next = shown.next.filter((act) => act.length === 1);
  keepPlace("game", shown.schedule);
  showRemedy(null);
  const pressed = document.activeElement?.closest(".moves button");
  board.show(shown, { title: shown.schedule, names });
  at("game-said").textContent = shown.acts.length > 0 ? said(shown) : t("A begins: the buyers are alike.");
  undo.setAttribute("aria-disabled", String(shown.acts.length === 0));
  end.hidden = !shown.over;
  if (shown.over) {
    (tried[choice()] ??= new Map()).set(shown.schedule, !shown.passed);
    conclude(shown).catch((problem) => complain(view, problem));
  }
  if (pressed?.hidden) moveFocus(shown);
  showTried();
}

// moveFocus moves the focus from the button of a buyer who has finished to the next one, or to what the game has come to.
function moveFocus(/** @type {Position} */ shown) {
  const next = [...view.querySelectorAll(".moves button:not([hidden])")].find((button) => button.ariaDisabled !== "true");
  (shown.over ? end : next)?.focus();
}

// conclude says what the game has come to. A schedule that failed is played with a remedy, too.
async function conclude(/** @type {Position} */ shown) {
  const verdict = end.querySelector(".verdict");
  const values = { ...shown, n: shown.acts.length };
  verdict.className = `verdict ${shown.passed ? "" : "good"}`;
  verdict.textContent = shown.passed ? t("Each unit was sold once, and no buyer waits for ever.")
    : shown.sold > shown.units ? t("Found it: {sold} sold of {units}, in {n} steps.", values)
      : t("Found it: {sold} sold of {units}, and no more will be, after {n} steps.", values);
  end.querySelector(".why").textContent = t(shown.why);
  end.querySelector(".reason").hidden = shown.passed;
  const soon = units.value === "1"; // all schedules of three buyers take a minute, and the reader's word
  if (shown.passed) return shown.designed && soon && exploreAll();
  const mended = (lessonOf()?.remedy ?? "redis") + shown.schedule.replace(/^[^*:]*/, "");
  const other = await ask("/schedule", { name: mended, loose: true });
  if (shown !== position || !isChosen(shown)) return false; // the reader has gone on meanwhile
  showRemedy(other);
  return soon && exploreAll();
}

// showRemedy shows the same schedule with another strategy beside the game, or nothing.
function showRemedy(/** @type {Position} */ other) {
  remedy.root.hidden = !other;
  at("game-boards").classList.toggle("two", Boolean(other));
  if (!other) return;
  remedy.show(other, { title: t("The same schedule with {strategy}", other) });
  board.reveal();
}

// exploreAll lets the lab play all schedules of the choice, once, and shows how far it is.
async function exploreAll() {
  const chosen = choice();
  if (explored[chosen]) return;
  explored[chosen] = {};
  const ends = new AbortController();
  exploring = { chosen, ends };
  const asked = { strategy: strategy.value, units: Number(units.value), crash: faults.checked };
  try {
    await follow("/explore", asked, ends.signal, (news) => {
      explored[chosen] = news;
      showTried();
    });
    if (!explored[chosen].found) throw explored[chosen].problem ? { text: explored[chosen].problem } : unanswered;
  } catch (problem) {
    delete explored[chosen];
    if (!ends.signal.aborted) complain(view, problem);
  }
  showTried();
}

// abandon ends the exploration of what the reader has left, for which others wait.
function abandon() {
  if (exploring?.chosen !== choice() || !location.hash.startsWith("#game")) exploring?.ends.abort();
}

// showTried says what the reader has tried, what all schedules come to, and how one fails if the reader does not find it.
function showTried() {
  const mine = tried[choice()] ?? new Map();
  const { found: all, waiting, played = 0, todo = 1 } = explored[choice()] ?? {};
  explore.hidden = choice() in explored;
  const failures = [...mine.values()].filter(Boolean).length;
  const says = [mine.size > 0 ? t("Schedules tried: {n}.", { n: mine.size }) : ""];
  if (waiting) says.push(t("The lab is busy. All schedules are played when it is free."));
  else if (choice() in explored && !all) says.push(t("All schedules are being played: {played} done, at least {todo} to go.", { played, todo }));
  if (all) says.push(...found(all, mine));
  else if (mine.size >= 3 && failures === 0 && !explore.hidden) says.push(t("Not found yet? Let the lab play all schedules and show the shortest that fails."));
  at("tried").replaceChildren(...says.filter(Boolean).flatMap((one) => [one, gap]));
}

function found(/** @type {Explored} */ all, mine) {
  const values = { ...all, all: all.schedules.length };
  if (all.failed.length === 0 && all.designed) return [t("You cannot win: all {all} schedules with at most two switches between buyers were tried, and none fails.", values)];
  const says = [t("Of all {all} schedules with at most two switches between buyers, {oversold} oversell and {undersold} leave a unit unsold or a buyer waiting.", values)];
  if (all.failed.length === 0) says.push(t("The mistake of this strategy shows only if processes die or locks run out."));
  else if (mine.size >= 3 || [...mine.values()].some(Boolean)) says.push(t("The shortest schedule that fails:"), linkTo(all.failed[0]));
  return says;
}

function linkTo(schedule) {
  return Object.assign(document.createElement("a"), { href: `#game/${schedule}`, textContent: schedule });
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
  strategy.addEventListener("change", () => { // under these, its mistake can be found
    units.value = lessonOf()?.schedule.match(/\*(\d)/)?.[1] ?? "1";
    faults.checked = needsFaults();
  });
  for (const input of [strategy, units, faults]) {
    input.addEventListener("change", () => {
      names = buyers();
      abandon();
      byHand("r");
    });
  }
  undo.addEventListener("click", () => byHand("u"));
  at("restart").addEventListener("click", () => byHand("r"));
  addEventListener("hashchange", abandon);
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
