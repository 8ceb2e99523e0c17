// What came of a run: the lab draws it as in its report.
import { placeOf } from "./form.js";
import { language, t, translate } from "./text.js";

const result = document.getElementById("result");
const verdict = document.getElementById("verdict");
const status = document.getElementById("status");
const files = document.getElementById("files");
const hint = status.textContent; // what to do before the first run
let shown = 0; // the run whose result is on the page

export async function showResult(state) {
  const text = state.status || t(hint);
  if (status.textContent !== text) status.textContent = text; // read out once, however often it comes
  files.hidden = !state.result;
  if (!state.result) {
    shown = 0;
    result.replaceChildren();
    verdict.replaceChildren();
    return;
  }
  for (const form of ["html", "json"]) {
    document.getElementById(form).href = `/runs/${state.run}/report.${form}?lang=${language}`;
  }
  document.getElementById("link").href = `#race/${placeOf(state.choice)}`;
  if (shown === state.run) return;
  shown = state.run;
  try {
    const answer = await fetch(`/runs/${state.run}/result?lang=${language}`);
    if (!answer.ok) return;
    const html = await answer.text();
    if (shown !== state.run) return;
    result.innerHTML = html; // the lab has escaped what is in it
    translate(result);
    verdict.replaceChildren(result.firstElementChild); // where the rows were
  } catch {
    shown = 0; // with the next event
  }
}
