// The card of the turns: which one is shown, its latency, its facts, the waterfall, and the same as a table.

import { BUDGET_MS, chipsOf, hiddenMs, knowsTheWork, stagesOf, tallyOf, whyOf } from "./turn.js";
import { toolRows } from "./tools-used.js";
import { TurnStrip } from "./turn-strip.js";
import { draw } from "./waterfall.js";

function made(name, text = "", className = "") {
  return Object.assign(document.createElement(name), { textContent: text, className });
}

export class TurnPanel {
  #turns = []; // {id, record, answer, tools} of the call's measured turns; the last may be `record.open`
  #shown = -1;
  #newCall = false;

  /** `$(id)` finds an element of the page. */
  constructor($) {
    this.$ = $;
    this.strip = new TurnStrip($("strip"), BUDGET_MS, (index) => this.#show(index));
  }

  /** What was last shown stays until there is something new. */
  newCall() {
    this.#newCall = true;
  }

  /** A turn is being answered, and nothing is known of its times. */
  set pending(pending) {
    this.$("pending").hidden = !pending;
  }

  /** A turn, or what more is known of it; `id` is its answer's. One more is shown unless somebody looks at an older one.
   *  `turn`: {record, answer, tools}, what the server or this page measured, the answer's words, the tools that ran. */
  put(id, turn) {
    if (this.#newCall) {
      this.#turns = [];
      this.#shown = -1;
      this.strip.clear();
      this.#newCall = false;
    }
    const follows = this.#shown === this.#turns.length - 1;
    const known = this.#turns.findIndex((other) => other.id === id);
    const index = known < 0 ? this.#turns.length : known;
    this.#turns[index] = { id, ...turn };
    this.strip.put(index, turn.record.turn_latency, follows);
    this.$("tally").textContent = tallyOf(this.#turns.map(({ record }) => record));
    this.pending = false;
    this.#show(known < 0 && follows ? index : this.#shown);
  }

  /** Whatever is not known of the last turn will not be told any more. */
  settle() {
    this.pending = false;
    const last = this.#turns.at(-1);
    if (!last?.record.open) return;
    last.record = { ...last.record, open: false };
    this.#show(this.#shown);
  }

  #show(index) {
    const $ = this.$;
    this.#shown = index;
    const { record, answer, tools } = this.#turns[index];
    $("turn-title").textContent = `Turn ${index + 1} of ${this.#turns.length}`;
    $("turn-empty").hidden = true;
    $("turn").hidden = false;
    const stages = stagesOf(record);
    $("hidden-ms").textContent = Math.round(hiddenMs(stages));
    $("hidden-so").hidden = Boolean(record.by_page) && !knowsTheWork(record);
    $("answer").textContent = answer && `“${answer}”`;
    showTurn($, record, { budget: BUDGET_MS, who: "you", tools });
  }
}

/** Fills the card. `who` spoke: "you" or "the caller". A turn without a latency has a dash in its place. */
export function showTurn($, record, { budget, who, tools }) {
  const stages = stagesOf(record);
  const timed = Number.isFinite(record.turn_latency);
  $("turn").classList.toggle("late", record.turn_latency > budget && !record.by_request);
  $("latency").textContent = timed ? Math.round(record.turn_latency) : "–";
  $("chips").replaceChildren(...chipsOf(record, { budget, who }).map(chip));
  $("why").textContent = whyOf(record, who);
  $("stages").replaceChildren(...stages.map(tableRow));
  draw($("waterfall"), stages, budget, who);
  $("tools").replaceChildren(...toolRows(tools));
}

function chip({ text, tone, title }) {
  return Object.assign(made("li", text, tone), { title });
}

function tableRow({ name, from, to, until, awaited }) {
  const row = made("tr");
  const head = made("th", name);
  head.scope = "row";
  const cells = [from, to, to - from, until - from];
  row.append(head, ...cells.map((ms) => made("td", awaited ? "…" : Math.round(ms))));
  return row;
}
