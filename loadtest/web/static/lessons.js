// The lessons: a schedule each, which stops before the step that decides and asks what will happen. The lab plays it once;
// here, each step shows what was recorded.
import { Board, actor, said } from "./board.js";
import { ask, complain, signed } from "./post.js";
import { gap, t } from "./text.js";
import { autoplay, keepPlace, onKeys } from "./views.js";

const at = (id) => document.getElementById(id);
const [view, slider, back, next, pick, question, end, verdict, forget] =
  ["lesson", "lesson-at", "lesson-back", "lesson-next", "lesson-pick", "question", "lesson-end", "lesson-verdict", "lesson-forget"].map(at);
const board = new Board(at("lesson-boards"));
const remedy = new Board(at("lesson-boards"));
const play = autoplay("lesson", () => {
  goByHand(step + 1);
  return recording && step < last();
});
/** @type {Map<Lesson, Promise<Recording>>} */
const recordings = new Map();

/** @type {Lesson[]} */
let lessons; // all
/** @type {Lesson} */
let lesson; // this one
/** @type {Recording} */
let recording; // of it; undefined until it is there
let step = 0; // acts that were done, or will be shown once the recording is there
let skipped = false; // a link leads behind a question that was not answered
let beside = false; // the lesson was seen to its end, and the remedy is stepped beside it
const kept = remembered();

// remembered is what this browser knows of earlier visits: {answers: the index of each lesson's, place}.
function remembered() {
  try {
    return { answers: {}, place: "", ...JSON.parse(localStorage.getItem("lessons")) };
  } catch {
    return { answers: {}, place: "" };
  }
}

function remember() {
  try {
    localStorage.setItem("lessons", JSON.stringify(kept));
  } catch { /* a browser that keeps nothing forgets it with the page */ }
}

// openLesson shows the lesson at a place: its name, and a slash and a number of acts.
export async function openLesson(place) {
  const [name, acts] = (place || kept.place).split("/");
  try {
    lessons ??= await load();
    const wanted = lessons.find((one) => one.name === name) ?? lesson ?? lessons[0];
    if (wanted !== lesson) begin(wanted);
    step = Number(acts) || 0;
    skipped ||= step > lesson.ask && answer() === undefined;
    await reach(wanted);
    complain(view, null);
  } catch (problem) {
    complain(view, problem);
  }
}

async function load() {
  const all = await signed(view, ask("/lessons"));
  pick.replaceChildren(...all.map(({ missing }) => Object.assign(new Option(), { disabled: missing, title: missing ? t(missing) : "" })));
  return all;
}

// begin shows what a lesson asks, before its recording is there.
function begin(/** @type {Lesson} */ chosen) {
  play.stop();
  [lesson, recording, step, skipped, beside] = [chosen, undefined, 0, false, false];
  board.root.hidden = remedy.root.hidden = question.hidden = end.hidden = verdict.hidden = true;
  at("lesson-said").textContent = "";
  pick.selectedIndex = lessons.indexOf(lesson);
  const n = lessons.indexOf(lesson) + 1;
  at("lesson-title").textContent = t("Lesson {n} of {all}: {title}", { n, all: lessons.length, title: t(lesson.title) });
  at("lesson-text").textContent = t(lesson.text);
  at("lesson-on").hidden = !following();
  at("lesson-try").href = `#game/${lesson.schedule.split(":")[0]}:`;
  end.querySelector(".why").textContent = t(lesson.why);
  end.querySelector(".fix").textContent = t(lesson.fix);
  question.querySelector("legend").textContent = t(lesson.question);
  question.querySelector(".answers").replaceChildren(...lesson.options.map(({ text }, i) => {
    const item = document.createElement("div");
    const label = document.createElement("label");
    label.append(Object.assign(document.createElement("input"), { type: "radio", name: "answer", value: i, required: true }), t(text));
    item.append(label, Object.assign(document.createElement("p"), { className: "reason" }));
    return item;
  }));
  showScore();
}

// reach shows the step once the lesson has been played, if it is still the one that is wanted.
async function reach(/** @type {Lesson} */ wanted) {
  if (wanted.missing) throw { text: wanted.missing };
  if (!recordings.has(wanted)) recordings.set(wanted, ask("/lesson", { name: wanted.name }));
  const played = await signed(view, recordings.get(wanted)).catch((problem) => {
    recordings.delete(wanted);
    throw problem;
  });
  await Promise.all([board.learn(played.mistake.at(-1)), remedy.learn(played.remedy.at(-1))]);
  if (wanted !== lesson) return;
  recording = played;
  slider.max = String(played.mistake.length - 1);
  show();
}

function following() {
  return lessons.slice(lessons.indexOf(lesson) + 1).find(({ missing }) => !missing);
}

function answer() {
  return kept.answers[lesson.name];
}

// last is how far one can go: to the question, until it is answered.
function last() {
  return answer() === undefined && !skipped ? lesson.ask : recording.mistake.length - 1;
}

// show shows the lesson after the acts of step.
function show() {
  step = Math.min(Math.max(step, 0), last());
  kept.place = `${lesson.name}/${step}`;
  remember();
  keepPlace("lesson", kept.place);
  const [here, all] = [recording.mistake[step], recording.mistake.at(-1)];
  const asks = step === lesson.ask && answer() === undefined && !skipped;
  beside ||= here === all;
  const turn = actor(all.acts[step] ?? all.acts.at(-1));
  const names = all.buyers.map(({ name }) => name);
  remedy.root.hidden = !beside;
  at("lesson-boards").classList.toggle("two", beside);
  board.show(here, { title: t("With {strategy}", here), names, turn, covered: asks });
  if (beside) remedy.show(recording.remedy[step], { title: t("The same schedule with {strategy}", recording.remedy[step]), step, names, turn });
  at("lesson-said").textContent = (step > 0 ? said(here) : t("No request has taken a step yet.")) + (asks ? gap + t("What happens next?") : "");
  slider.value = String(step);
  slider.setAttribute("aria-valuetext", t("{n} of {all}", { n: step, all: all.acts.length }));
  back.setAttribute("aria-disabled", String(step === 0));
  for (const on of [next, at("lesson-last")]) on.setAttribute("aria-disabled", String(step === last()));
  at("lesson-intro").hidden = step > 0;
  showAnswer();
  end.hidden = !beside;
}

// showAnswer shows the question while it is open and, until the lesson goes on, what is right and wrong in each answer.
function showAnswer() {
  const chosen = answer();
  const right = chosen === lesson.right;
  question.hidden = step !== lesson.ask || beside;
  question.querySelector("[type=submit]").hidden = chosen !== undefined;
  [...question.querySelectorAll(".answers div")].forEach((item, i) => {
    const input = item.querySelector("input");
    input.disabled = chosen !== undefined;
    input.checked = i === chosen;
    const mark = i === lesson.right ? "✓" : "✕";
    item.className = chosen === undefined ? "" : `${i === lesson.right ? "good" : "bad"} ${i === chosen ? "chosen" : ""}`;
    item.querySelector(".reason").textContent = chosen === undefined ? "" : `${mark} ${t(lesson.options[i].reason)}`;
  });
  verdict.hidden = chosen === undefined || step < lesson.ask;
  verdict.className = `verdict ${right ? "good" : "bad"}`;
  verdict.textContent = verdict.hidden ? "" : right ? `✓ ${t("You were right.")}`
    : `✕ ${t("No. The answer is: {right}", { right: t(lesson.options[lesson.right].text) })}`;
}

function showScore() {
  const marks = lessons.map(({ name, right }) => name in kept.answers ? kept.answers[name] === right : undefined);
  const all = marks.filter((mark) => mark !== undefined).length;
  at("lesson-score").textContent = all === 0 ? "" : t("{right} of {all} right", { right: marks.filter(Boolean).length, all });
  forget.hidden = all === 0;
  lessons.forEach(({ title }, i) => {
    pick.options[i].textContent = `${i + 1}. ${t(title)}${{ true: " ✓", false: " ✕" }[marks[i]] ?? ""}`;
  });
}

// goByHand goes to a step at once or, while the lesson is being played, as soon as it is there.
function goByHand(to) {
  step = to;
  if (!recording) return lesson ? reach(lesson).catch((problem) => complain(view, problem)) : openLesson("");
  show();
  const both = beside && step < last();
  if (matchMedia("(max-width: 760px)").matches) at(both ? "lesson-boards" : "lesson-said").scrollIntoView({ block: "start" });
  if (!question.hidden && answer() === undefined) question.querySelector("input").focus();
}

function wireAnswers() {
  question.addEventListener("submit", (event) => {
    event.preventDefault();
    if (answer() !== undefined) return;
    kept.answers[lesson.name] = Number(question.elements.answer.value);
    showScore();
    show();
    next.focus();
  });
  forget.addEventListener("click", () => {
    kept.answers = {};
    beside = skipped = false;
    step = 0;
    showScore();
    show();
    at("lesson-title").focus();
  });
}

export function wireLessons() {
  const byHand = (to) => () => {
    play.stop();
    goByHand(to());
  };
  slider.addEventListener("input", byHand(() => Number(slider.value)));
  back.addEventListener("click", byHand(() => step - 1));
  next.addEventListener("click", byHand(() => step + 1));
  at("lesson-again").addEventListener("click", byHand(() => 0));
  at("lesson-last").addEventListener("click", byHand(() => Infinity));
  pick.addEventListener("change", () => openLesson(lessons[pick.selectedIndex].name));
  at("lesson-on").addEventListener("click", async () => {
    await openLesson(following().name);
    at("lesson-title").focus();
  });
  wireAnswers();
  onKeys("lesson", ({ key }) => {
    const to = { ArrowRight: step + 1, ArrowLeft: step - 1, Home: 0, End: Infinity }[key];
    if (key === " ") play.toggle();
    else if (to !== undefined) byHand(() => to)();
    else return false;
    return true;
  });
}
