// The card of one turn, over the page: its words, its waterfall, its tools. For the dashboard and for kept calls.

import { agentOf, clock } from "./tables.js";
import { showTurn } from "./turn-panel.js";

/** An element with an id, some attributes, and what is in it: texts and elements. */
function part(name, id, attributes, ...inside) {
  const element = document.createElement(name);
  if (id) element.id = id;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

/** What stands in the card; its ids are those that `showTurn` fills. */
function card() {
  const close = part("form", "", { method: "dialog" }, part("button", "", { class: "secondary" }, "Close"));
  const latency = part("p", "", { title: "From the caller's last sound to the first sound of the answer" },
    part("span", "latency", {}), " ", part("span", "", { class: "unit" }, "ms"), " ",
    part("span", "", { class: "label" }, "turn latency"));
  const heads = ["Stage", "From", "To", "Took", "Hidden"].map((name) => part("th", "", { scope: "col" }, name));
  const table = part("table", "", {}, part("thead", "", {}, part("tr", "", {}, ...heads)), part("tbody", "stages", {}));
  return [
    part("div", "", { class: "turn-head" }, part("h2", "turn-title", {}), close),
    part("p", "turn-problem", { hidden: "" }),
    part("div", "turn-body", {},
      part("div", "", { class: "headline" }, latency),
      part("ul", "chips", { "aria-label": "About this turn" }),
      part("dl", "", { class: "words" }, part("dt", "", {}, "Heard"), part("dd", "heard", { dir: "auto" }),
        part("dt", "", {}, "Answered"), part("dd", "answered", { dir: "auto" })),
      part("div", "waterfall", {}),
      part("ul", "tools", { class: "tools", "aria-label": "Tools that ran" }),
      part("p", "why", {}),
      part("details", "", {}, part("summary", "", {}, "The same as a table"), table)),
  ];
}

export class TurnDialog {
  constructor() {
    this.dialog = part("dialog", "turn", { class: "card turn", "aria-labelledby": "turn-title" }, ...card());
    document.body.append(this.dialog);
    this.dialog.addEventListener("click", ({ target }) => target === this.dialog && this.dialog.close()); // beside the card
  }

  /** `full`: a turn as the server has it; `budget` in ms. */
  show(full, budget) {
    this.#begin(`Turn at ${clock(full.turn.at)}, ${agentOf(full.turn)}`, "");
    this.#find("heard").textContent = full.heard || "(no words)";
    this.#find("answered").textContent = full.answered || "(nothing)";
    for (const id of ["heard", "answered"]) this.#find(id).lang = full.record?.language ?? "";
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
    return id === this.dialog.id ? this.dialog : this.dialog.querySelector(`#${id}`);
  }
}
