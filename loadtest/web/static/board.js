// The board: what each buyer has done, believes and does next, and what none of them sees.
import { ask } from "./post.js";
import { t } from "./text.js";

const template = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);

export class Board {
  // A board at the end of a place. With doAct, each buyer has buttons, and doAct gets the act of one that is pressed.
  constructor(place, doAct) {
    this.root = template("board");
    this.root.hidden = true;
    this.doAct = doAct;
    this.cards = {};
    place.append(this.root);
    this.find(".all input").addEventListener("change", (event) => this.root.classList.toggle("everything", event.target.checked));
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  // show draws a position. names are all buyers, of whom some may not have come yet; turn is whose line is shown.
  show(position, title, names = position.buyers.map((buyer) => buyer.name), turn = actor(position.acts.at(-1))) {
    this.position = position;
    nameOwners(position);
    this.root.hidden = false;
    this.find(".title").textContent = title;
    this.find(".stock").textContent = t(position.stock.fence > 0 ? "available {available}, reserved {reserved}, fence {fence}"
      : "available {available}, reserved {reserved}", position.stock);
    this.find(".sold").textContent = t("{sold} sold of {units}", position);
    this.find(".sold").classList.toggle("bad", position.sold > position.units);
    this.find(".lock").textContent = lockOf(position);
    if (Object.keys(this.cards).join() !== names.join()) this.deal(names);
    for (const name of names) this.fill(this.cards[name], buyerOf(position, name), name === turn);
    const events = this.find(".events");
    events.dataset.buyers = names.length;
    const hidden = folded(position);
    events.replaceChildren(...position.events.map((event, i) => row(position, hidden, event, i, names)));
    const wrong = events.querySelector(".wrong");
    events.scrollTop = wrong ? wrong.offsetTop - events.clientHeight / 2 : events.scrollHeight;
    this.focus(turn);
  }

  // showRemedy draws the end of the same schedule with another strategy. still reports whether that is wanted by then.
  async showRemedy(schedule, strategy, still) {
    this.root.hidden = true;
    const mended = await ask("/schedule", { name: schedule.replace(/^[^*:]*/, strategy), loose: true });
    if (still()) this.show(mended, t("The same schedule with {strategy}", mended));
  }

  deal(names) {
    this.cards = {};
    for (const name of names) {
      const card = this.cards[name] = template("buyer");
      card.classList.add(name);
      const who = card.querySelector(".focus");
      who.textContent = t("Buyer {name}", { name });
      who.title = t("Show where {name} is in the source", { name });
      who.addEventListener("click", () => this.focus(name));
      if (!this.doAct) continue;
      card.querySelector(".moves").hidden = false;
      const low = name.toLowerCase();
      const moves = [[name, low, ""], [low, `⇧${low}`, "until it waits"],
        [`x${low}`, `x ${low}`, "dies"], [`t${low}`, `t ${low}`, "its lock runs out"]];
      card.querySelector(".moves").append(...moves.map(([act, key, text]) => {
        const button = Object.assign(document.createElement("button"), { type: "button" });
        button.dataset.act = act;
        button.append(made("span", "label", t(text)), " ", made("kbd", "", key));
        button.addEventListener("click", () => this.doAct(act));
        return button;
      }));
    }
    this.find(".buyers").dataset.buyers = names.length;
    this.find(".buyers").replaceChildren(...Object.values(this.cards));
  }

  fill(card, buyer, turn) {
    card.classList.toggle("turn", turn);
    const put = (selector, text) => { card.querySelector(selector).textContent = text; };
    put(".state", stateOf(buyer, this.position.over));
    put(".believes", believes(buyer, this.position.lock));
    put(".next code", this.doAct ? "" : nextOf(buyer));
    for (const button of card.querySelectorAll(".moves button")) {
      const { act } = button.dataset;
      const can = this.position.next.includes(act.length > 1 ? act : act.toUpperCase());
      button.setAttribute("aria-disabled", String(!can));
      button.hidden = act.length > 1 && !can;
      if (act !== buyer.name) continue;
      button.querySelector(".label").textContent = `${act}: ${nextOf(buyer) || stateOf(buyer, this.position.over)}`;
    }
  }

  // focus shows the source at a buyer's next step.
  async focus(name) {
    for (const [other, card] of Object.entries(this.cards)) {
      card.querySelector(".focus").setAttribute("aria-pressed", String(other === name));
    }
    const buyer = this.focused = buyerOf(this.position, name);
    const figure = this.find(".code");
    const [path, line] = (buyer.line ?? "").split(":");
    const text = path ? await load(`/source/${path}`) : "";
    if (buyer !== this.focused) return;
    figure.hidden = text === "";
    figure.querySelector("figcaption").textContent = t("{name} is at {line}", { name, line: buyer.line });
    const lines = text.replaceAll("\t", "    ").split("\n").map((code, i) =>
      made(i + 1 === Number(line) ? "mark" : "span", "", `${String(i + 1).padStart(4)}  ${code}\n`));
    const func = text.split("\n").slice(0, line).findLastIndex((code) => code.startsWith("func ")); // comments of functions may tell an ending
    const end = text.split("\n").indexOf("}", line - 1);
    figure.querySelector("pre").replaceChildren(...lines.slice(Math.max(0, func, line - 6), Math.min(Number(line) + 3, end < 0 ? Infinity : end + 1)));
    figure.querySelector("p code").textContent = nextOf(buyer);
  }
}

// actor is whose act it is.
export function actor(act = "A") {
  return act.at(-1).toUpperCase();
}

function buyerOf(position, name) {
  return position.buyers.find((buyer) => buyer.name === name) ?? { name, state: "ready", next: "" };
}

// nameOwners replaces the random names of a lock's owners, which differ each time a schedule is played, by names of the buyers.
function nameOwners({ events, buyers, lock }) {
  const names = new Map();
  const named = (text, actor) => text?.replace(/\b\w{6}…/g, (owner) => {
    const nth = [...names.values()].filter((name) => name.startsWith(`owner-${actor}`)).length;
    if (!names.has(owner)) names.set(owner, `owner-${actor}${nth > 0 ? nth + 1 : ""}`);
    return names.get(owner);
  });
  for (const event of events) [event.text, event.answer] = [named(event.text, event.actor), named(event.answer, event.actor)];
  for (const buyer of buyers) buyer.next = named(buyer.next, buyer.name);
  if (lock) lock.owner = named(lock.owner, lock.holder);
}

// said is what the last act has come to, as a sentence.
export function said(position) {
  const n = position.acts.length;
  const hidden = folded(position);
  const news = position.events.filter((event) => event.act === n - 1 && !hidden.has(event));
  return [t("Step {n}.", { n }), ...news.map((e) => `${e.actor}: ${wordsOf(e)}${e.answer ? ` → ${t(e.answer)}` : ""}${t(".")}`)].join(" ");
}

// folded returns the events that say nothing of who gets the unit. Of each act, one at least is shown.
function folded({ events }) {
  const told = new Set(events.filter((event) => !event.noise).map((event) => event.act));
  return new Set(events.filter((event) => {
    if (!event.noise || event.act < 0 || told.has(event.act)) return event.noise;
    told.add(event.act);
    return false;
  }));
}

function row(position, hidden, event, i, names) {
  const item = made("li", `${event.kind} ${event.actor}`, "");
  item.dataset.column = names.indexOf(event.actor) + 1;
  item.classList.toggle("noise", hidden.has(event));
  item.classList.toggle("new", event.act === position.acts.length - 1);
  item.classList.toggle("wrong", i === position.wrong);
  const before = position.events.slice(0, i).findLast((other) => !hidden.has(other));
  const what = made("span", "what", "");
  what.append(made("span", "actor", `${event.actor}: `), made("span", "text", wordsOf(event)));
  if (event.answer) what.append(" ", made("span", "answer", `→ ${t(event.answer)}`));
  if (/^EVAL/.test(event.text)) what.append(script(event.text));
  if (i === position.wrong) what.append(" ", made("span", "here", `✕ ${t("here it goes wrong")}`));
  item.append(made("span", "act", event.act >= 0 && before?.act !== event.act ? event.act + 1 : ""), what);
  return item;
}

// wordsOf translates what is in the catalogue, which is what is not sent to a server.
function wordsOf({ kind, text }) {
  return t(kind === "step" ? text.replaceAll("-", " ") : text);
}

// lockOf is what the lock's store has of it, or where that is not known, what the buyers believe.
function lockOf({ lock, buyers }) {
  if (lock) {
    if (!lock.owner) return t("free");
    const name = lock.holder ? `${lock.holder}, ${lock.owner}` : lock.owner;
    return lock.ttl_ms ? t("{name}: {ms} ms left", { name, ms: lock.ttl_ms }) : t("{name}: without end", { name });
  }
  const held = buyers.filter((b) => b.holds && b.state !== "died").map((b) => t("{name} holds it", b));
  return held.join(t("; ")) || t("no buyer holds it");
}

function stateOf({ state, answer }, over) {
  return t({ ready: "can go on", waits: over ? "waits for ever" : "waits", died: "has died", done: answer }[state]);
}

function believes({ name, state, read, holds, expired }, lock) {
  const lost = expired || lock && lock.owner !== "a row" && lock.holder !== name;
  return [
    read === undefined ? "" : t("has read {read}", { read }),
    holds && state !== "died" ? t(lost ? "believes it has the lock" : "has the lock") : "",
  ].filter(Boolean).join(" · ");
}

// nextOf is a buyer's next step: a statement, a command, or what it does with a lock.
function nextOf({ next }) {
  const [, kind, text] = next.match(/^(\w+) (.*)$/s) ?? [];
  if (kind === "lock") return t("takes the lock {key}", { key: text });
  if (kind === "release") return t("releases the lock {key}", { key: text });
  return text ?? next;
}

// script is the Lua source of a command that names a script, to be unfolded.
function script(command) {
  const lua = made("details", "", "");
  lua.append(made("summary", "", "Lua"), made("pre", "", ""));
  lua.addEventListener("toggle", async () => {
    lua.lastChild.textContent = await load(`/script?${new URLSearchParams({ command: command.split(" ", 3).join(" ") })}`);
  });
  return lua;
}

const loaded = new Map(); // of the source, by path

function load(path) {
  if (!loaded.has(path)) loaded.set(path, fetch(path).then((answer) => answer.ok ? answer.text() : Promise.reject(answer))
    .catch(() => loaded.delete(path) && ""));
  return loaded.get(path);
}

function made(tag, name, text) {
  return Object.assign(document.createElement(tag), { className: name, textContent: text });
}
