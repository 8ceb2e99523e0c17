// A play, to be walked forward and back.
const article = document.getElementById("play");
const slider = document.getElementById("at");
const rows = document.getElementById("events");
const back = document.getElementById("back");
const next = document.getElementById("next");
let shown; // the play

export function show(play) {
  shown = play;
  put("play-title", `${play.scenario} with ${play.strategy}`);
  put("play-outcome", `${play.passed ? "✓" : "✕"} ${play.outcome}`);
  document.getElementById("play-outcome").className = `word ${play.passed ? "good" : "bad"}`;
  put("why", play.why);
  put("remedy", play.remedy);
  document.getElementById("remedy-part").hidden = play.remedy === "";
  rows.replaceChildren(...play.events.map(row));
  slider.max = play.events.length;
  article.hidden = false;
  go(1);
  article.focus({ preventScroll: true });
  const top = article.getBoundingClientRect().top;
  if (top < 0 || top > innerHeight / 2) article.scrollIntoView();
}

slider.addEventListener("input", () => go(Number(slider.value)));
back.addEventListener("click", () => go(Number(slider.value) - 1));
next.addEventListener("click", () => go(Number(slider.value) + 1));
article.addEventListener("keydown", (event) => {
  if (event.target === slider || event.altKey || event.ctrlKey || event.metaKey) return; // they have keys of their own
  const at = Number(slider.value);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 1, End: shown.events.length }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  go(to);
});

// go shows the play up to its nth event, counted from 1.
function go(n) {
  const last = shown.events.length;
  const at = Math.min(Math.max(n, 1), last);
  slider.value = at;
  [...rows.children].forEach((r, i) => {
    r.classList.toggle("ahead", i >= at);
    if (i === at - 1) r.setAttribute("aria-current", "step");
    else r.removeAttribute("aria-current");
  });
  put("believed", believed(at));
  const event = shown.events[at - 1];
  const wrong = at - 1 === shown.wrong ? " Here it goes wrong." : "";
  put("now", `Step ${at} of ${last}: ${event.actor}: ${event.text}${event.answer ? ` → ${event.answer}` : ""}.${wrong}`);
  slider.setAttribute("aria-valuetext", `${at} of ${last}`);
  back.setAttribute("aria-disabled", String(at === 1));
  next.setAttribute("aria-disabled", String(at === last));
  rows.children[at - 1].scrollIntoView({ block: "nearest" });
}

// believed is the stock as each buyer has last read it.
function believed(at) {
  const read = {};
  for (const event of shown.events.slice(0, at)) {
    if (event.kind === "step" && event.text === "read" && event.answer) read[event.actor] = event.answer;
  }
  const reads = Object.keys(read).sort().map((actor) => `${actor} has read ${read[actor]}`);
  return [`At the start: ${shown.stock === 1 ? "1 unit" : `${shown.stock} units`}`, ...reads].join(" · ");
}

function row(event, i) {
  const tr = document.createElement("tr");
  tr.classList.toggle("wrong", i === shown.wrong);
  tr.append(cell("th", ms(event.at_ns)));
  const text = cell("td", "");
  text.className = event.kind;
  text.append(span("text", event.text));
  if (event.answer) text.append(span("answer", `→ ${event.answer}`));
  if (i === shown.wrong) text.append(span("here", "✕ here it goes wrong"));
  tr.append(...(event.actor === "A" ? [text, cell("td", "")] : [cell("td", ""), text]));
  tr.addEventListener("click", () => go(i + 1));
  return tr;
}

function cell(tag, text) {
  const c = document.createElement(tag);
  if (tag === "th") c.scope = "row";
  c.textContent = text;
  return c;
}

function span(name, text) {
  const s = document.createElement("span");
  s.className = name;
  s.textContent = text;
  return s;
}

function ms(ns) {
  return (ns / 1e6).toFixed(ns < 1e8 ? 1 : 0);
}

function put(id, text) {
  document.getElementById(id).textContent = text;
}
