// The lessons: a schedule each, which stops before the step that decides and asks what will happen.
import { Board, actor, said } from "./board.js";
import { ask, complain } from "./post.js";
import { t } from "./text.js";
import { allowFaults } from "./game.js";
import { autoplay, keepPlace, onKeys } from "./views.js";

const at = (id) => document.getElementById(id);
const [view, slider, back, next, pick, question, end] =
  ["lesson", "lesson-at", "lesson-back", "lesson-next", "lesson-pick", "question", "lesson-end"].map(at);
const scores = {}; // by lesson: whether the answer was right
const board = new Board(at("lesson-boards"));
const remedy = new Board(at("lesson-boards"));
const play = autoplay("lesson", async () => whole && step < last() && (await attempt(step + 1)) && step < last());

let lessons; // all
let lesson; // this one
let whole; // its position at the end, which knows the acts
let reached; // positions by the number of acts
let step; // acts that were done
let answer; // index of the option that was chosen; -1 if the question is not asked
let going = 0; // counts what is to be shown: the latest wins

// openLesson shows the lesson at a place: its name, and a slash and a number of acts.
export async function openLesson(place) {
  const [name, acts] = place.split("/");
  try {
    lessons ??= await load();
    const wanted = lessons.find((one) => one.name === name) ?? lesson ?? lessons[0];
    if ((wanted !== lesson || !whole) && !(await begin(wanted))) return;
    const to = name ? Number(acts) || 0 : step;
    if (to > lesson.ask) answer ??= -1;
    await go(to);
    complain(view, null);
  } catch (problem) {
    complain(view, problem);
  }
}

async function load() {
  const all = await ask("/lessons");
  pick.replaceChildren(...all.map((one) => new Option("", one.name)));
  showScore(all);
  return all;
}

// begin reports whether the lesson is still the latest.
async function begin(chosen) {
  const mine = ++going;
  play.stop();
  [lesson, whole, reached, step, answer] = [chosen, undefined, new Map(), 0, undefined];
  board.root.hidden = remedy.root.hidden = question.hidden = end.hidden = true;
  pick.value = lesson.name;
  const n = lessons.indexOf(lesson) + 1;
  at("lesson-title").textContent = t("Lesson {n} of {all}: {title}", { n, all: lessons.length, title: t(lesson.title) });
  at("lesson-text").textContent = t(lesson.text);
  at("lesson-on").hidden = n === lessons.length;
  at("lesson-try").href = `#game/${lesson.schedule.split(":")[0]}:`;
  question.querySelector("legend").textContent = t(lesson.question);
  question.querySelector(".answers").replaceChildren(...lesson.options.map((text, i) => {
    const label = document.createElement("label");
    label.append(Object.assign(document.createElement("input"), { type: "radio", name: "answer", value: i, required: true }), t(text));
    return label;
  }));
  const all = await ask("/schedule", { name: lesson.schedule });
  if (mine !== going) return false;
  whole = all;
  slider.max = whole.acts.length;
  reached.set(whole.acts.length, Promise.resolve(whole));
  return true;
}

// last is how far one can go: to the question, until it is answered.
function last() {
  return answer === undefined ? lesson.ask : whole.acts.length;
}

// go shows the lesson after n acts. It reports whether it is shown.
async function go(n) {
  const mine = ++going;
  const to = Math.min(Math.max(n, 0), last());
  const name = `${lesson.schedule.split(":")[0]}:${whole.acts.slice(0, to).join("")}`;
  if (!reached.has(to)) reached.set(to, ask("/schedule", { name }));
  const there = await reached.get(to).catch((problem) => {
    reached.delete(to);
    throw problem;
  });
  if (mine !== going) return false;
  step = to;
  keepPlace("lesson", `${lesson.name}/${step}`);
  board.show(there, t("With {strategy}", there), whole.buyers.map((buyer) => buyer.name), actor(whole.acts[step] ?? whole.acts.at(-1)));
  const asks = step === lesson.ask && answer === undefined;
  at("lesson-said").textContent = [
    step > 0 ? said(there) : t("No request has taken a step yet."),
    asks ? t("What happens next?") : "",
    step === lesson.ask && answer >= 0 ? t("Go on, and see.") : "",
  ].join(" ");
  question.hidden = !asks;
  slider.value = step;
  slider.setAttribute("aria-valuetext", t("{n} of {all}", { n: step, all: whole.acts.length }));
  back.setAttribute("aria-disabled", String(step === 0));
  next.setAttribute("aria-disabled", String(step === last()));
  end.hidden = remedy.root.hidden = step < whole.acts.length;
  if (!end.hidden) {
    conclude();
    await remedy.showRemedy(lesson.schedule, lesson.remedy, () => mine === going);
  }
  return true;
}

// conclude shows whether the answer was right, and why.
function conclude() {
  const right = answer === lesson.right;
  if (answer >= 0) {
    scores[lesson.name] ??= right;
    showScore(lessons);
  }
  const verdict = end.querySelector(".verdict");
  verdict.textContent = answer < 0 ? "" : right ? `✓ ${t("You were right.")}`
    : `✕ ${t("No. The answer is: {right}", { right: t(lesson.options[lesson.right]) })}`;
  verdict.className = `verdict ${right ? "good" : "bad"}`;
  end.querySelector(".why").textContent = t(lesson.why);
  end.querySelector(".fix").textContent = t(lesson.fix);
}

function showScore(all) {
  const marks = Object.values(scores);
  at("lesson-score").textContent = marks.length === 0 ? ""
    : t("{right} of {all} right", { right: marks.filter(Boolean).length, all: marks.length });
  all.forEach(({ name, title }, i) => {
    pick.options[i].textContent = `${i + 1}. ${t(title)}${{ true: " ✓", false: " ✕" }[scores[name]] ?? ""}`;
  });
}

async function attempt(n) {
  try {
    complain(view, null);
    return await go(n);
  } catch (problem) {
    return complain(view, problem);
  }
}

async function goByHand(n) {
  play.stop();
  if (!whole) return openLesson(lesson?.name ?? "");
  if (await attempt(n) && !question.hidden) question.querySelector("input").focus();
}

export function wireLessons() {
  slider.addEventListener("input", () => goByHand(Number(slider.value)));
  back.addEventListener("click", () => goByHand(step - 1));
  next.addEventListener("click", () => goByHand(step + 1));
  pick.addEventListener("change", () => openLesson(pick.value));
  at("lesson-on").addEventListener("click", async () => {
    await openLesson(lessons[lessons.indexOf(lesson) + 1].name);
    at("lesson-title").focus();
  });
  question.addEventListener("submit", (event) => {
    event.preventDefault();
    answer = Number(new FormData(question).get("answer"));
    goByHand(step);
    next.focus();
  });
  at("lesson-try").addEventListener("click", () => allowFaults(/[xtw]/.test(lesson.schedule.split(":")[1])));
  onKeys("lesson", ({ key }) => {
    const to = { ArrowRight: step + 1, ArrowLeft: step - 1, Home: 0, End: Infinity }[key];
    if (key === " ") play.toggle();
    else if (to !== undefined) goByHand(to);
    else return false;
    return true;
  });
}
