// The card of one turn, over the page: its words, its waterfall, its tools. For the dashboard and for kept calls.

import { made } from "./elements.js";
import { agentOf, clock } from "./tables.js";
import { showTurn } from "./turn-panel.js";

const CARD = `
<div class="turn-head">
  <h2 id="turn-title"></h2>
  <form method="dialog"><button class="secondary">Close</button></form>
</div>
<p id="turn-problem" hidden></p>
<div id="turn-body">
  <div class="headline"><p title="From the caller's last sound to the first sound of the answer"><span id="latency"></span>
    <span class="unit">ms</span> <span class="label">turn latency</span></p></div>
  <ul id="chips" aria-label="About this turn"></ul>
  <dl class="words"><dt>Heard</dt><dd id="heard"></dd><dt>Answered</dt><dd id="answered"></dd></dl>
  <div id="waterfall"></div>
  <ul id="tools" class="tools" aria-label="Tools that ran"></ul>
  <p id="why"></p>
  <details>
    <summary>The same as a table</summary>
    <table>
      <thead><tr><th scope="col">Stage</th><th scope="col">From</th><th scope="col">To</th>
        <th scope="col">Took</th><th scope="col">Hidden</th></tr></thead>
      <tbody id="stages"></tbody>
    </table>
  </details>
</div>`;

export class TurnDialog {
  constructor() {
    this.dialog = Object.assign(made("dialog", "card turn"), { id: "turn", innerHTML: CARD });
    this.dialog.setAttribute("aria-labelledby", "turn-title");
    document.body.append(this.dialog);
    this.dialog.addEventListener("click", ({ target }) => target === this.dialog && this.dialog.close()); // beside the card
  }

  /** `full`: a turn as the server has it; `budget` in ms. */
  show(full, budget) {
    this.#begin(`Turn at ${clock(full.turn.at)}, ${agentOf(full.turn)}`, "");
    this.#find("heard").textContent = full.heard || "(no words)";
    this.#find("answered").textContent = full.answered || "(nothing)";
    const record = { ...full.record, reopened: full.turn.cut_in };
    showTurn((id) => this.#find(id), record, { budget, who: "the caller", tools: full.tools });
  }

  /** There is none to be shown: why. */
  lacks(problem) {
    this.#begin("Turn", problem);
  }

  #begin(title, problem) {
    this.#find("turn-title").textContent = title;
    this.#find("turn-problem").textContent = problem;
    this.#find("turn-problem").hidden = !problem;
    this.#find("turn-body").hidden = Boolean(problem);
    if (!this.dialog.open) this.dialog.showModal(); // before anything is drawn: bars are laid out in what is seen
  }

  #find(id) {
    return this.dialog.querySelector(`#${id}`);
  }
}
