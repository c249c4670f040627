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
    const $ = this.$;
    this.#turns.push(record);
    const stages = stagesOf(record);
    $("turn-empty").hidden = true;
    $("turn").hidden = false;
    $("turn").classList.toggle("late", record.turn_latency > BUDGET_MS);
    $("latency").textContent = Math.round(record.turn_latency);
    $("tally").textContent = tallyOf(this.#turns);
    $("chips").replaceChildren(...chipsOf(record).map(({ text, tone }) => made("li", text, tone)));
    $("why").textContent = whyOf(record);
    $("stages").replaceChildren(...stages.map(tableRow));
    draw($("waterfall"), stages, BUDGET_MS);
  }
}

function tableRow({ name, from, to }) {
  const row = made("tr");
  const head = made("th", name);
  head.scope = "row";
  row.append(head, ...[from, to, to - from].map((ms) => made("td", Math.round(ms))));
  return row;
}
