// The two views of the page, by the fragment of the address. Other fragments are places within a view.
const views = ["race", "steps"];

export function wireViews() {
  addEventListener("hashchange", show);
  show();
}

function show() {
  const asked = location.hash.slice(1);
  if (asked !== "" && !views.includes(asked)) return;
  for (const name of views) {
    const here = name === (asked || "race");
    document.getElementById(name).hidden = !here;
    const link = document.querySelector(`nav a[href="#${name}"]`);
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}
