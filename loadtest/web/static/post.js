// Requests that change something or play something, and what the lab refuses of them.
import { t } from "./text.js";

// ask returns the lab's answer, or throws why there is none: {text}, and the field of the form that it is about.
export async function ask(path, body) {
  let answer;
  let said = null;
  try {
    answer = await fetch(path, body && {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (answer.status !== 204) said = await answer.json();
  } catch {
    throw { text: "the lab does not answer" };
  }
  if (!answer.ok) throw said;
  return said;
}

// post reports whether the lab has done it, or shows in the form why not.
export async function post(path, body, form) {
  try {
    await ask(path, body);
    return true;
  } catch (problem) {
    complain(form, problem);
    return false;
  }
}

export function clear(form) {
  form.querySelectorAll(".problem").forEach((p) => { p.hidden = true; });
  form.querySelectorAll("[aria-invalid]").forEach((i) => i.removeAttribute("aria-invalid"));
}

// complain shows a problem beside its field in a form, or where the form or view has an alert. null takes it away.
export function complain(form, problem) {
  const { field, text = "" } = problem ?? {};
  const beside = field && form.querySelector(`#${field}-problem`);
  const place = beside || form.querySelector("[role=alert]");
  place.textContent = field && !beside ? `${field}: ${t(text)}` : t(text);
  place.hidden = !problem;
  const input = beside && (document.getElementById(field) ?? form.querySelector("fieldset input:enabled"));
  input?.setAttribute("aria-invalid", "true");
  input?.focus();
}
