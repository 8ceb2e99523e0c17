// Requests that change something, and what the lab refuses of them.

// post returns the answer, or shows in the form why there is none.
export async function post(path, body, form) {
  try {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (answer.ok) return answer;
    complain(form, await answer.json());
  } catch {
    complain(form, { text: "the lab does not answer" });
  }
}

export function clear(form) {
  form.querySelectorAll(".problem").forEach((p) => { p.hidden = true; });
  form.querySelectorAll("[aria-invalid]").forEach((i) => i.removeAttribute("aria-invalid"));
}

function complain(form, { field, text }) {
  const beside = field && form.querySelector(`#${field}-problem`);
  const place = beside || form.querySelector("[role=alert]");
  place.textContent = field && !beside ? `${field}: ${text}` : text;
  place.hidden = false;
  const input = beside && (document.getElementById(field) ?? form.querySelector("fieldset input:enabled"));
  input?.setAttribute("aria-invalid", "true");
  input?.focus();
}
