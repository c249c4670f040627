// Charts on the page: drawn anew with every view, in the colours of the style sheet, and steered by keyboard.

import { latencyFigure, outcomesFigure, pointTurns, speculationFigure, stagesFigure, turnNear } from "./figures.js";

const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false, showTips: false };
const NAMES = ["ink", "soft", "line", "card", "good", "late", "accent", "wait", "asr", "llm", "tts", "playout"];
const FIGURES = {
  "latency-chart": latencyFigure,
  "outcomes-chart": outcomesFigure,
  "stages-chart": stagesFigure,
  "speculation-chart": speculationFigure,
};

function colours() {
  const style = getComputedStyle(document.body);
  const found = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  return { ...found, p50: found.accent, p95: found.llm, p99: found.soft, font: style.fontFamily };
}

export class Charts {
  #view = null;
  #chosen = ""; // the turn that the arrow keys stand on

  /** `$(id)` finds an element of the page. `onTurn(id)`: a turn is to be shown. `onChosen(turn)`: keys stand on it. */
  constructor($, onTurn, onChosen) {
    this.$ = $;
    this.onTurn = onTurn;
    this.onChosen = onChosen;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#view && this.draw(this.#view));
  }

  draw(view) {
    const first = this.#view === null;
    this.#view = view;
    const given = colours();
    for (const [id, figure] of Object.entries(FIGURES)) {
      const { data, layout } = figure(view, given, this.#chosen);
      Plotly.react(this.$(id), data, layout, CONFIG);
    }
    if (first) this.#listen(this.$("latency-chart"));
  }

  #listen(chart) {
    chart.on("plotly_click", ({ points }) => {
      const [{ customdata, pointNumber, y }] = points;
      const id = customdata ?? turnNear(this.#view, pointNumber, y)?.id;
      if (id) this.onTurn(id);
    });
    chart.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.#chosen) this.onTurn(this.#chosen);
      else if (event.key === "ArrowLeft") this.#step(-1);
      else if (event.key === "ArrowRight") this.#step(1);
      else return;
      event.preventDefault();
    });
  }

  #step(by) {
    const turns = pointTurns(this.#view);
    if (!turns.length) return;
    const at = turns.findIndex((turn) => turn.id === this.#chosen);
    const number = at < 0 ? turns.length - 1 : Math.min(Math.max(at + by, 0), turns.length - 1);
    this.#chosen = turns[number].id;
    this.draw(this.#view);
    this.onChosen(turns[number]);
  }
}
