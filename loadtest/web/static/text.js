// Texts of the page in the reader's language. The English text is the key of its translation.
const asked = new URLSearchParams(location.search).get("lang") ?? navigator.language;
export const language = asked.toLowerCase().startsWith("zh") ? "zh" : "en";
export const gap = language === "zh" ? "" : " "; // between sentences
const catalogue = language === "zh" ? await load() : {};

async function load() {
  try {
    return await (await fetch("/static/zh.json")).json();
  } catch {
    return {};
  }
}

// t translates a text and fills in its {values}.
export function t(english, values = {}) {
  return (catalogue[english] ?? counted(english)).replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
}

// counted translates a text that has its numbers already: the key may have {n} for each of them.
function counted(english) {
  const numbers = english.match(number) ?? [];
  return catalogue[english.replace(number, "{n}")]?.replace(/\{n\}/g, () => numbers.shift()) ?? english;
}

const number = /\d+(?:[,.]\d+)*/g;

const wide = /([，。；：？！）])\s*$/; // a mark that needs no blank

// translate does so with what the lab has written: text nodes, and the names of controls.
export function translate(root) {
  const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (nodes.nextNode()) {
    const node = /** @type {Text} */ (nodes.currentNode);
    if (wide.test(node.previousSibling?.textContent)) node.data = node.data.trimStart();
    const text = node.data.trim().replace(/\s+/g, " ");
    if (text in catalogue && !node.parentElement?.closest("code, pre, script")) {
      node.data = node.data.replace(node.data.trim(), () => t(text)).replace(wide, "$1");
    }
  }
  for (const element of root.querySelectorAll("[aria-label], [title], optgroup")) {
    for (const name of ["aria-label", "title", "label"]) {
      if (element.hasAttribute(name)) element.setAttribute(name, t(element.getAttribute(name)));
    }
  }
}

// wireLanguage translates the page. The links to the other language keep the place in it.
export function wireLanguage() {
  document.documentElement.lang = language;
  if (language !== "en") [document, ...[...document.querySelectorAll("template")].map((one) => one.content)].forEach(translate);
  for (const link of document.querySelectorAll(".languages a")) {
    if (link.lang === language) link.setAttribute("aria-current", "true");
    link.addEventListener("click", () => { link.href = `?lang=${link.lang}${location.hash}`; });
  }
}
