// The conversation as it is known so far. Everything said is set as text, never as markup.

import { made } from "./elements.js";

const DROPPED_MS = 1000; // voice that is not committed within this time was a cough, not a turn

export class Transcript {
  #list;
  #scroll;
  #onFirst;
  #items = new Map(); // item id -> {bubble, words, open}
  agent = "Agent"; // heads the words of whoever has the call now
  lang = ""; // in which is spoken now, by its tag
  #spoken = []; // the caller's spoken items, in order

  /** `list`: the <ol>; `scroll`: the element around it that scrolls; `onFirst()` is called when something is said. */
  constructor(list, scroll, onFirst) {
    this.#list = list;
    this.#scroll = scroll;
    this.#onFirst = onFirst;
    new ResizeObserver(() => this.#follow()).observe(scroll);
  }

  // The caller.

  /** Voice began: a bubble that waits for its words. */
  callerSpeaks(itemId) {
    if (this.#items.has(itemId)) return;
    this.#add(itemId, "caller", "You");
    this.#spoken.push(itemId);
  }

  callerStopped(itemId) {
    setTimeout(() => this.#items.get(itemId)?.open && this.remove(itemId), DROPPED_MS);
  }

  callerWords(itemId, delta) {
    this.callerSpeaks(itemId);
    this.#items.get(itemId).words.append(delta);
    this.#follow();
  }

  /** What was said for good; replaces the words that grew. `lang`: in which language, where the server tells it. */
  callerSaid(itemId, text, lang) {
    this.callerSpeaks(itemId);
    const item = this.#items.get(itemId);
    item.words.textContent = text;
    if (lang) item.words.lang = lang;
    this.#close(item);
    if (!text) item.words.append(made("em", "", "no words understood"));
  }

  committed(itemId) {
    const item = this.#items.get(itemId);
    if (item) item.open = false;
  }

  /** A typed message, shown before the server has it. */
  typing(text) {
    this.#add(null, "caller sending", "You, typed").words.textContent = text;
    this.#follow();
  }

  /** Nobody will get what is still being sent. */
  notSent() {
    for (const bubble of this.#list.querySelectorAll(".sending")) {
      bubble.classList.remove("sending", "growing");
      bubble.removeAttribute("aria-busy");
      bubble.append(made("p", "mark", "not sent"));
    }
  }

  /** The server has the typed message. */
  typed(itemId, text) {
    if (this.#items.has(itemId)) return; // we have told it
    const bubble = this.#list.querySelector(".sending") ?? this.#add(null, "caller", "You, typed").bubble;
    bubble.classList.remove("sending", "growing");
    bubble.removeAttribute("aria-busy");
    const words = bubble.querySelector(".words");
    words.textContent = text;
    this.#items.set(itemId, { bubble, words, open: false });
  }

  // The agent.

  agentWords(itemId, delta) {
    const item = this.#items.get(itemId) ?? this.#add(itemId, "agent", this.agent);
    item.words.append(delta);
    this.#follow();
  }

  /** The reply is whole. `status`: "completed" or "incomplete". */
  agentDone(itemId, status) {
    const item = this.#items.get(itemId);
    if (!item) return;
    this.#close(item);
    if (status === "incomplete" && !item.bubble.querySelector(".mark")) {
      item.bubble.append(made("p", "mark", "interrupted"));
      this.#follow();
    }
  }

  /** Of an interrupted reply, only `text` was heard: the rest stays readable, but is shown as unsaid. */
  agentHeard(itemId, text) {
    const item = this.#items.get(itemId);
    if (!item || !item.bubble.querySelector(".mark")) return;
    const unheard = item.words.textContent.startsWith(text) ? item.words.textContent.slice(text.length) : "";
    item.words.textContent = text;
    if (unheard.trim()) item.words.append(made("del", "", unheard));
  }

  /** The caller had not finished: what they say now belongs to the turn before, and `replyItemIds` were a cut-in. */
  reopened(replyItemIds) {
    for (const itemId of replyItemIds) {
      const reply = this.#items.get(itemId);
      reply?.bubble.classList.add("withdrawn");
      const mark = reply?.bubble.querySelector(".mark");
      if (mark) mark.textContent = "withdrawn, you had not finished";
    }
    const [before, after] = this.#spoken.slice(-2).map((itemId) => this.#items.get(itemId));
    if (!after || before.bubble === after.bubble) return;
    const joint = made("span", "joint", " … ");
    joint.title = "You went on, so both parts are one turn";
    before.words.parentNode.append(joint, after.words);
    after.bubble.remove();
    after.bubble = before.bubble;
    if (after.open) before.bubble.classList.add("growing");
  }

  // Both.

  /** What was said and heard, in order: [{id, role, text, open}]; `open`: it was not finished. */
  get said() {
    return [...this.#items].map(([id, { bubble, words, open }]) => {
      const plain = [...words.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
      const text = plain.map((node) => node.data).join("").trim();
      return { id, role: bubble.classList.contains("agent") ? "assistant" : "user", text, open };
    });
  }

  /** Typed messages that no server has taken. */
  get unsent() {
    return [...this.#list.querySelectorAll(".sending .words")].map((words) => words.textContent);
  }

  /** The line broke: nothing comes of what was begun, and the conversation goes on over another line. */
  broken() {
    for (const [id, item] of [...this.#items]) item.words.textContent ? this.#close(item) : this.remove(id);
  }

  remove(itemId) {
    const item = this.#items.get(itemId);
    if (!item) return;
    this.#items.delete(itemId);
    this.#spoken = this.#spoken.filter((id) => id !== itemId);
    const joined = [...this.#items.values()].some((other) => other.bubble === item.bubble);
    (joined ? item.words : item.bubble).remove();
  }

  /** The call is over: a line says so, and the next call's items are others. */
  end(text) {
    this.#items.forEach((item) => this.#close(item));
    this.#items.clear();
    this.#spoken = [];
    if (this.#list.children.length) this.add([made("li", "note", text)]);
  }

  /** Rows that nobody has said: above the first of these items, which came of them, or else below everything. */
  add(rows, itemIds = []) {
    const shown = itemIds.map((itemId) => this.#items.get(itemId)?.bubble).find(Boolean);
    shown ? shown.before(...rows) : this.#list.append(...rows);
    this.#follow();
  }

  #add(itemId, className, who) {
    const bubble = made("li", `${className} growing`);
    bubble.setAttribute("aria-busy", "true"); // screen readers read it once, when it is whole
    const said = Object.assign(made("p", "said"), { dir: "auto", lang: this.lang });
    const words = made("span", "words");
    said.append(words);
    bubble.append(made("p", "who", who), said);
    this.#onFirst();
    this.#list.append(bubble);
    this.#follow();
    const item = { bubble, words, open: true };
    if (itemId) this.#items.set(itemId, item);
    return item;
  }

  #close(item) {
    item.open = false;
    item.bubble.classList.remove("growing");
    item.bubble.removeAttribute("aria-busy");
  }

  /** Keep the newest in sight. */
  #follow() {
    if (this.#list.children.length) this.#scroll.scrollTop = this.#scroll.scrollHeight;
  }
}
