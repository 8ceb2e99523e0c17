// The views of the page, by the fragment of the address: #race, #lesson/none/3, #game/none:Ab. Other fragments are
// places within the race.
import { t } from "./text.js";

export const calm = matchMedia("(prefers-reduced-motion: reduce)");

const views = {};
let here = ""; // the address that is shown

// addView lets open show what the fragment says behind the view's name, and a slash.
export function addView(name, open) {
  views[name] = open;
}

export function wireViews() {
  addEventListener("hashchange", show);
  show();
}

// keepPlace puts the place within the view into the address, unless that leads elsewhere by now.
export function keepPlace(view, place) {
  if (location.hash !== here || here.split("/")[0] !== `#${view}`) return;
  history.replaceState(null, "", `#${view}/${place}`);
  here = location.hash;
}

function show() {
  here = location.hash;
  const [asked, place] = here.slice(1).split(/\/(.*)/s);
  const view = Object.hasOwn(views, asked) ? asked : "race";
  for (const name of Object.keys(views)) {
    document.getElementById(name).hidden = name !== view;
    const link = document.querySelector(`nav a[href="#${name}"]`);
    if (name === view) link?.setAttribute("aria-current", "page");
    else link?.removeAttribute("aria-current");
  }
  document.title = `${document.querySelector(`#${view} h2`).textContent} – ${t("Race lab")}`;
  views[view](view === asked ? place ?? "" : "");
}

// Autoplay takes a step every so often, until it is stopped, the view is left, or step reports that it was the last.
export function autoplay(view, step) {
  const button = document.getElementById(`${view}-play`);
  const speed = document.getElementById(`${view}-speed`);
  let run = 0;
  const stop = () => {
    run++;
    button.setAttribute("aria-pressed", "false");
  };
  const start = async () => {
    const mine = ++run;
    button.setAttribute("aria-pressed", "true");
    while (mine === run) {
      if (document.getElementById(view).hidden || !(await step())) return mine === run && stop();
      await new Promise((wake) => { setTimeout(wake, Number(speed.value)); });
    }
  };
  const toggle = () => { button.getAttribute("aria-pressed") === "true" ? stop() : start(); };
  button.addEventListener("click", toggle);
  return { stop, toggle };
}

// onKeys lets handle have the keys that are pressed in a view, unless an input or a button needs them. It reports
// whether it knows the key.
export function onKeys(view, handle) {
  addEventListener("keydown", (event) => {
    const { target } = event;
    if (document.getElementById(view).hidden || event.altKey || event.ctrlKey || event.metaKey) return;
    if (target.closest("select") && event.key !== "r") return;
    if (target.closest("select")) target.blur(); // r restarts a game; the list would look for a name
    if (target.matches("input") && (!target.matches("[type=checkbox]") || event.key === " ")) return;
    if (event.key === " " && target.closest("button, a, [tabindex='0']")) return;
    if (handle(event)) event.preventDefault();
  });
}
