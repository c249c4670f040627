// The card of the last turn: its latency, its facts, the waterfall, and the same as a table.

import { BUDGET_MS, chipsOf, stagesOf, tallyOf, whyOf } from "./turn.js";
import { draw } from "./waterfall.js";

function made(name, text = "", className = "") {
  return Object.assign(document.createElement(name), { textContent: text, className });
}

export class TurnPanel {
  #turns = []; // records of this call's measured turns

  /** `$(id)` finds an element of the page. */
  constructor($) {
    this.$ = $;
  }

  /** What was last shown stays; the tally counts anew. */
  newCall() {
    this.#turns = [];
  }

  show(record) {
    this.#turns.push(record);
    this.$("turn-empty").hidden = true;
    this.$("turn").hidden = false;
    this.$("tally").textContent = tallyOf(this.#turns);
    showTurn(this.$, record, { budget: BUDGET_MS, who: "you" });
  }
}

/** Fills the card. `who` spoke: "you" or "the caller". A turn without a latency has a dash in its place. */
export function showTurn($, record, { budget, who }) {
  const stages = stagesOf(record);
  const timed = Number.isFinite(record.turn_latency);
  $("turn").classList.toggle("late", record.turn_latency > budget && !record.by_request);
  $("latency").textContent = timed ? Math.round(record.turn_latency) : "–";
  $("chips").replaceChildren(...chipsOf(record, { budget, who }).map(({ text, tone }) => made("li", text, tone)));
  $("why").textContent = whyOf(record, who);
  $("stages").replaceChildren(...stages.map(tableRow));
  draw($("waterfall"), stages, budget, who);
}

function tableRow({ name, from, to }) {
  const row = made("tr");
  const head = made("th", name);
  head.scope = "row";
  row.append(head, ...[from, to, to - from].map((ms) => made("td", Math.round(ms))));
  return row;
}
