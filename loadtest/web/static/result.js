// What came of a run: the lab draws it as in its report.
import { placeOf } from "./form.js";
import { language, t, translate } from "./text.js";

const result = document.getElementById("result");
const verdict = document.getElementById("verdict");
const status = document.getElementById("status");
const files = document.getElementById("files");
const hint = status.textContent; // what to do before the first run
let shown = 0; // the run whose result is on the page

export async function showResult(/** @type {State} */ state) {
  const busy = state.busy && state.phase !== "running" && t("The lab is busy, perhaps for another tab.");
  const text = busy || state.status || t(hint);
  if (status.textContent !== text) status.textContent = text; // read out once, however often it comes
  files.hidden = !state.result;
  if (!state.result) {
    shown = 0;
    result.replaceChildren();
    verdict.replaceChildren();
    return;
  }
  for (const form of ["html", "json", "csv"]) {
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
    result.querySelectorAll(".chart").forEach(offer);
    verdict.replaceChildren(result.firstElementChild); // where the rows were
  } catch {
    shown = 0; // with the next event
  }
}

// offer lets a chart be saved, as a picture for a slide: light, and as wide as on a desk.
function offer(chart) {
  const buttons = document.createElement("p");
  buttons.className = "save";
  for (const form of ["PNG", "SVG"]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = t("Save as {form}", { form });
    button.addEventListener("click", () => save(chart.querySelector(".picture"), form));
    buttons.append(button);
  }
  chart.append(buttons);
}

async function save(picture, form) {
  const alone = picture.cloneNode(true);
  for (const element of [alone, ...alone.querySelectorAll("[class]")]) element.removeAttribute("class"); // its attributes are the light colours
  alone.setAttribute("viewBox", `0 0 ${alone.getAttribute("width")} ${alone.getAttribute("height")}`);
  const svg = new Blob([new XMLSerializer().serializeToString(alone)], { type: "image/svg+xml" });
  const name = picture.querySelector("text[font-size]").textContent.replace(/[^\p{L}\p{N}]+/gu, "-").toLowerCase();
  download(form === "SVG" ? svg : await paint(svg), `${name}.${form.toLowerCase()}`);
}

// paint returns a picture as PNG, with two pixels for each of its own.
async function paint(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => { canvas.toBlob(done); });
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
