// The card of the turns: which one is shown, its latency, its facts, the waterfall, and the same as a table.

import { BUDGET_MS, chipsOf, hiddenMs, stagesOf, tallyOf, whyOf } from "./turn.js";
import { toolRows } from "./tools-used.js";
import { TurnStrip } from "./turn-strip.js";
import { draw } from "./waterfall.js";

function made(name, text = "", className = "") {
  return Object.assign(document.createElement(name), { textContent: text, className });
}

export class TurnPanel {
  #turns = []; // {record, answer, tools} of the call's measured turns
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

  /** A turn is being answered: its times come with the end of the answer. */
  set pending(pending) {
    this.$("pending").hidden = !pending;
  }

  /** One more turn; it is shown unless somebody looks at an older one. `answer`: the reply's words; `tools`: that ran for it. */
  add(record, answer, tools) {
    if (this.#newCall) {
      this.#turns = [];
      this.#shown = -1;
      this.strip.clear();
      this.#newCall = false;
    }
    const follows = this.#shown === this.#turns.length - 1;
    this.#turns.push({ record, answer, tools });
    this.strip.add(record.turn_latency, follows);
    this.$("tally").textContent = tallyOf(this.#turns.map((turn) => turn.record));
    this.#show(follows ? this.#turns.length - 1 : this.#shown);
  }

  #show(index) {
    const $ = this.$;
    this.#shown = index;
    const { record, answer, tools } = this.#turns[index];
    $("turn-title").textContent = `Turn ${index + 1} of ${this.#turns.length}`;
    $("turn-empty").hidden = true;
    $("turn").hidden = false;
    $("hidden-ms").textContent = Math.round(hiddenMs(stagesOf(record)));
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
  $("chips").replaceChildren(...chipsOf(record, { budget, who }).map(({ text, tone }) => made("li", text, tone)));
  $("why").textContent = whyOf(record, who);
  $("stages").replaceChildren(...stages.map(tableRow));
  draw($("waterfall"), stages, budget, who);
  $("tools").replaceChildren(...toolRows(tools));
}

function tableRow({ name, from, to, until }) {
  const row = made("tr");
  const head = made("th", name);
  head.scope = "row";
  row.append(head, ...[from, to, to - from, until - from].map((ms) => made("td", Math.round(ms))));
  return row;
}
