// Requests that change something or play something, and what the lab refuses of them.
import { t } from "./text.js";

// unanswered is a problem that passes by itself, as while the lab is busy.
export const unanswered = { text: "the lab does not answer", passing: true };

// ask returns the lab's answer, or throws why there is none: {text}, and the field of the form that it is about.
/** @template {keyof Answers} Path @param {Path} path @param {object} [body] @param {AbortSignal} [signal] @returns {Promise<Answers[Path]>} */
export async function ask(path, body, signal) {
  let answer;
  let said = null;
  try {
    answer = await fetch(path, body && {
      signal,
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (answer.status !== 204) said = await answer.json();
  } catch {
    throw unanswered;
  }
  if (!answer.ok) throw said;
  return said;
}

// post reports whether the lab has done it, or shows in the form why not.
/** @param {keyof Answers} path @param {object} body @param {Found} form */
export async function post(path, body, form) {
  try {
    await ask(path, body);
    return true;
  } catch (problem) {
    complain(form, problem);
    return false;
  }
}

// follow asks for something that the lab tells in many lines of JSON, and hands on each. It throws why there is none.
export async function follow(path, body, signal, onNews) {
  const answer = await fetch(path, { signal, method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })
    .catch(() => { throw unanswered; });
  if (!answer.ok) throw await answer.json();
  let rest = "";
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + part.value).split("\n");
    rest = lines.pop();
    lines.forEach((line) => onNews(JSON.parse(line)));
  }
}

// signed shows a sign in a view while an answer takes longer than a moment.
export async function signed(view, answer) {
  const slow = setTimeout(() => view.setAttribute("aria-busy", "true"), 100);
  try {
    return await answer;
  } finally {
    clearTimeout(slow);
    view.removeAttribute("aria-busy");
  }
}

export function clear(form) {
  form.querySelectorAll(".problem").forEach((p) => { p.hidden = true; });
  form.querySelectorAll("[aria-invalid]").forEach((i) => i.removeAttribute("aria-invalid"));
}

// complain shows a problem beside its field in a form, or where the form or view has an alert. null takes it away.
export function complain(form, /** @type {Problem} */ problem) {
  const { field, text } = problem ?? { text: "" };
  const beside = field && form.querySelector(`#${field}-problem`);
  const place = beside || form.querySelector("[role=alert]");
  place.textContent = field && !beside ? t("{who}: ", { who: field }) + t(text) : t(text);
  place.hidden = !problem;
  place.toggleAttribute("data-passing", Boolean(problem?.passing));
  const input = beside && (document.getElementById(field) ?? form.querySelector("fieldset input:enabled"));
  input?.setAttribute("aria-invalid", "true");
  input?.focus();
}

// free takes away what was wrong while the lab was busy or did not answer.
export function free() {
  document.querySelectorAll("[data-passing]").forEach((place) => { place.hidden = true; });
}
