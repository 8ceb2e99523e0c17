// The board: what each buyer has done, believes and does next, and what none of them sees.
import { gap, t } from "./text.js";
import { calm } from "./views.js";

const template = (id) => /** @type {Found} */ (document.getElementById(id).content.firstElementChild.cloneNode(true));

export class Board {
  /** @type {Position} */ position; // that is shown
  turn = "";

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

  // show draws a position. names are all buyers, of whom some may not have come yet; turn is whose line is shown; step is the
  // number of the newest act. What would answer a question is covered while it is open.
  show(/** @type {Position} */ position, { title, step = position.acts.length, names = position.buyers.map(({ name }) => name), turn = actor(position.acts.at(-1)), covered = false }) {
    const sells = position.sold === this.position?.sold + 1 && position.strategy === this.position.strategy;
    [this.position, this.turn] = [position, turn];
    this.root.hidden = false;
    this.find(".title").textContent = title;
    const fact = (name, text) => { this.find(`.${name}`).textContent = covered ? t("hidden") : text; };
    fact("stock", t(Number(position.stock.fence) > 0 ? "available {available}, reserved {reserved}, fence {fence}"
      : "available {available}, reserved {reserved}", position.stock));
    fact("sold", t("{sold} sold of {units}", position));
    fact("lock", lockOf(position));
    this.find(".locks").textContent = t({ memory: "Mutexes", count: "Taken from the count", hold: "On hold" }[position.lock_name] ?? "Lock");
    this.find(".sold").classList.toggle("bad", position.sold > position.units);
    if (Object.keys(this.cards).join() !== names.join()) this.deal(names);
    for (const name of names) this.fill(this.cards[name], buyerOf(position, name), name === turn, covered);
    this.root.classList.toggle("asks", Boolean(covered));
    this.hand(position, names, sells, covered);
    this.tell(position, names, step);
    this.showCode(position);
  }

  // hand shows what is left on the shelf, and which buyers have a unit. In the act that sells it, the unit moves from one to the
  // other. A unit beyond those that there were is marked.
  hand(/** @type {Position} */ position, names, moves, covered) {
    const { units, sold } = position;
    const slots = Array.from({ length: units }, (_, i) => made("i", `swatch ${i < units - sold ? "there" : "gone"}`, ""));
    this.find(".shelf").hidden = covered;
    this.find(".slots").replaceChildren(...slots);
    const owners = covered ? [] : [...ownersOf(position)];
    for (const name of names) {
      const unit = this.cards[name].querySelector(".unit");
      const nth = owners.indexOf(name);
      const moved = nth >= 0 && unit.hidden;
      unit.hidden = nth < 0;
      unit.className = `unit swatch ${nth < units ? "sold" : "over"}`;
      if (nth >= units) this.cards[name].querySelector(".believes").textContent += ` · ${t("has a unit that was never there")}`;
      if (moved && moves && !calm.matches) travel(slots[Math.max(0, units - 1 - nth)], unit);
    }
  }

  // tell lists what has happened.
  tell(/** @type {Position} */ position, names, step) {
    const events = this.find(".events");
    events.dataset.buyers = names.length;
    const hidden = folded(position);
    events.replaceChildren(...position.events.map((event, i) => row(position, hidden, event, i, names, step)));
  }

  // reveal scrolls to what decides, once it is over, or else to what is new.
  reveal() {
    const events = this.find(".events");
    const shown = this.position.over && events.querySelector(".wrong, .saved") || events.querySelector(".new:not(.noise)");
    events.scrollTop = shown ? shown.offsetTop - events.clientHeight / 3 : events.scrollHeight;
    const code = this.find(".code");
    const line = code.querySelector(".wrong, .saved") ?? code.querySelector(`.${this.turn}`) ?? code.querySelector("[data-at]");
    if (line) code.scrollTop = line.offsetTop - code.clientHeight / 2;
  }

  deal(names) {
    this.cards = {};
    names.forEach((name, i) => {
      const card = this.cards[name] = template("buyer");
      card.classList.add(name);
      card.querySelector(".name").textContent = t("Buyer {name}, instance {n}", { name, n: i + 1 });
      if (!this.doAct) return;
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
    });
    this.find(".buyers").dataset.buyers = names.length;
    this.find(".buyers").replaceChildren(...Object.values(this.cards));
  }

  fill(card, /** @type {Buyer} */ buyer, turn, covered) {
    const { name, state } = buyer;
    const ended = state === "done" || state === "died";
    card.classList.toggle("turn", turn);
    const put = (selector, text) => { card.querySelector(selector).textContent = text; };
    put(".state", covered && !ended ? "" : stateOf(buyer, this.position.over));
    put(".believes", believes(buyer, this.position.lock_name, covered));
    put(".next code", this.doAct || covered ? "" : nextOf(buyer));
    for (const button of card.querySelectorAll(".moves button")) {
      const { act } = button.dataset;
      const can = this.position.next.includes(act.length > 1 ? act : act.toUpperCase());
      button.setAttribute("aria-disabled", String(!can));
      button.hidden = ended || act.length > 1 && !can;
      if (act === name) button.querySelector(".label").textContent = t("{who}: ", { who: act }) + (nextOf(buyer) || stateOf(buyer, this.position.over));
    }
  }

  // learn adds the functions in which buyers have stood to the source that is shown.
  async learn(/** @type {Position} */ { strategy, lines: seen }) {
    const code = this.find(".code");
    if (code.dataset.strategy !== strategy) code.replaceChildren();
    code.dataset.strategy = strategy;
    for (const line of seen ?? []) {
      const [path, n] = line.split(":");
      const text = await load(`/source/${path}`);
      if (code.dataset.strategy !== strategy) return;
      const lines = text.split("\n");
      const first = lines.slice(0, n).findLastIndex((one) => one.startsWith("func ")); // comments of functions may tell the ending
      if (first < 0 || lineOf(code, path, first + 1)) continue;
      const pre = made("pre", "", "");
      pre.append(...lines.slice(first, lines.indexOf("}", first) + 1).map((one, i) => {
        const shown = made("span", "", `${one}\n`);
        shown.dataset.line = `${path}:${first + i + 1}`;
        return shown;
      }));
      code.append(made("figcaption", "", path), pre);
    }
  }

  // showCode marks where each buyer stands in the source.
  async showCode(/** @type {Position} */ position) {
    await this.learn(position);
    if (position !== this.position) return;
    const code = this.find(".code");
    const mark = (line, name, sign) => {
      const shown = line && lineOf(code, ...line.split(":"));
      if (!shown) return;
      shown.classList.add(name);
      shown.dataset.at = (shown.dataset.at ?? "") + sign;
    };
    for (const marked of code.querySelectorAll("[data-at]")) {
      marked.removeAttribute("data-at");
      marked.className = "";
    }
    const decides = position.over && position.events[Math.max(position.wrong, position.saved)]?.line;
    if (decides) mark(decides, position.saved < 0 ? "wrong" : "saved", position.saved < 0 ? "✕" : "✓");
    for (const { name, line } of position.buyers) mark(line, name, name);
    this.reveal();
  }
}

// travel moves a thing from where another one is to its own place.
function travel(from, thing) {
  const [start, end] = [from, thing].map((one) => one.getBoundingClientRect());
  thing.animate([{ transform: `translate(${start.x - end.x}px, ${start.y - end.y}px)` }, {}], { duration: 700, easing: "ease-in-out" });
}

// ownersOf are the buyers with an order, in the order in which they got a unit. A hold that has ended gives its unit back, and a
// late payment takes it again.
function ownersOf(/** @type {Position} */ { events, buyers, sold }) {
  const [ordering, owners, ended] = [new Set(), new Set(), new Set()];
  for (const { actor: who, text } of events) {
    if (/^(INSERT INTO orders|UPDATE orders SET status = 'paid')/.test(text)) ordering.add(who);
    else if (text.startsWith("ROLLBACK")) ordering.delete(who);
    else if (text.startsWith("COMMIT") && ordering.delete(who)) {
      if (ended.delete(who)) owners.delete(who);
      owners.add(who);
    } else if (text === "the hold ends") ended.add(who);
  }
  buyers.filter(({ answer }) => answer?.startsWith("201")).forEach(({ name }) => owners.add(name)); // in another's transaction
  ended.forEach((who) => owners.size > sold && owners.delete(who));
  return owners;
}

function lineOf(code, path, n) {
  return code.querySelector(`[data-line="${path}:${n}"]`);
}

// actor is whose act it is.
export function actor(act = "A") {
  return act.at(-1).toUpperCase();
}

/** @returns {Buyer} */
function buyerOf(/** @type {Position} */ position, name) {
  return position.buyers.find((buyer) => buyer.name === name) ?? { name, state: "absent", next: "" };
}

// said is what the last act has come to, as a sentence.
export function said(/** @type {Position} */ position) {
  const n = position.acts.length;
  const hidden = folded(position);
  const news = position.events.filter((event) => event.act === n - 1 && !hidden.has(event));
  return [t("Step {n}.", { n }), ...news.map((e) => `${wordsOf(e).join("")}${e.answer ? ` → ${answerOf(e.answer)}` : ""}${t(".")}`)].join(gap);
}

// folded returns the events that say nothing of who gets the unit. Of each act, one at least is shown.
function folded(/** @type {Position} */ { events }) {
  const told = new Set(events.filter((event) => !event.noise).map((event) => event.act));
  return new Set(events.filter((event) => {
    if (!event.noise || event.act < 0 || told.has(event.act)) return event.noise;
    told.add(event.act);
    return false;
  }));
}

function row(/** @type {Position} */ position, hidden, /** @type {PlayedEvent} */ event, i, names, step) {
  const item = made("li", `${event.kind} ${event.actor}`, "");
  item.dataset.column = names.indexOf(event.actor) + 1;
  item.classList.toggle("noise", hidden.has(event));
  item.classList.toggle("new", event.act === step - 1);
  item.classList.toggle("wrong", i === position.wrong);
  item.classList.toggle("saved", i === position.saved);
  const before = position.events.slice(0, i).findLast((other) => !hidden.has(other));
  const what = made("span", "what", "");
  const [who, text] = wordsOf(event);
  item.classList.toggle("all-buyers", who === "");
  what.append(made("span", "actor", who), made("span", "text", text));
  if (event.answer) what.append(" ", made("span", "answer", `→ ${answerOf(event.answer)}`));
  if (/^EVAL/.test(event.text)) what.append(script(event.text));
  if (i === position.wrong) what.append(" ", made("span", "here bad", `✕ ${t("here it goes wrong")}`));
  if (i === position.saved) what.append(" ", made("span", "here good", `✓ ${t("here it is prevented")}`));
  item.append(made("span", "act", event.act >= 0 && before?.act !== event.act ? event.act + 1 : ""), what);
  return item;
}

// wordsOf is who does something, unless it is nobody's, and what: translated, unless it is sent to a server.
function wordsOf(/** @type {PlayedEvent} */ { actor: who, kind, text }) {
  if (text === "the lock runs out") return ["", t("The lock runs out")];
  return [t("{who}: ", { who }), t(kind === "step" ? text.replaceAll("-", " ") : text)];
}

// answerOf translates an answer, and how often it came.
function answerOf(answer) {
  const [, text, times] = answer.match(/^(.*?)(?: \((\d+) times\))?$/s);
  return t(text) + (times ? gap + t("({times} times)", { times }) : "");
}

// lockOf is what the lock's store has of it or, where it does not name a holder, which buyers hold something.
function lockOf(/** @type {Position} */ { lock, lock_name, buyers, over }) {
  if (lock?.owner) {
    const name = lock.holders.join(t(", ")) || t(lock.owner);
    if (!lock.ttl_ms) return t("{name}: without end", { name });
    return over ? name : t("{name}: {s} s left", { name, s: (lock.ttl_ms / 1000).toFixed(1) });
  }
  if (lock || !lock_name) return t(lock ? "free" : "no lock");
  const held = buyers.filter((buyer) => buyer.holds && !buyer.mistaken).map(({ name, instance }) => lock_name === "memory" ? t("{name} at instance {instance}", { name, instance }) : name);
  return held.join(t("; ")) || t({ count: "nothing", hold: "nothing" }[lock_name] ?? "free");
}

function stateOf(/** @type {Buyer} */ { state, next, answer }, over) {
  const waits = next === "sql BEGIN" ? "waits for another transaction to end" : "waits";
  return t({ absent: "has not come yet", ready: "can go on", waits: over ? "waits for ever" : waits, died: "has died", done: answer }[state]);
}

function believes(/** @type {Buyer} */ { read, holds, mistaken }, lockName, covered) {
  const has = { count: [t("has taken a unit"), t("believes it has a unit")], hold: [t("holds a unit"), t("believes it holds a unit")] }[lockName]
    ?? [t("has the lock"), t("believes it has the lock")];
  return [read === undefined ? "" : t("has read {read}", { read }), holds && !covered ? has[Number(mistaken)] : ""].filter(Boolean).join(" · ");
}

// nextOf is a buyer's next step: a statement, a command, or what it does with a lock.
function nextOf(/** @type {Buyer} */ { next }) {
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
