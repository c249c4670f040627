// The turns of the call as a row of pillars to choose from, which are radio buttons: arrow keys step through them.

import { made } from "./elements.js";

export class TurnStrip {
  #root;
  #budget;
  #latencies = [];

  /** `onChoice(index)`: another turn is to be shown. */
  constructor(root, budgetMs, onChoice) {
    this.#root = root;
    this.#budget = budgetMs;
    root.addEventListener("change", ({ target }) => onChoice(Number(target.value)));
  }

  clear() {
    this.#latencies = [];
    this.#root.replaceChildren();
  }

  /** One more turn, or what more is known of one; `chosen`: one more is the one that is shown. */
  put(index, latency, chosen) {
    this.#latencies[index] = latency;
    const label = this.#root.children[index] ?? this.#add(index, chosen);
    label.className = latency > this.#budget ? "late" : "";
    label.title = `Turn ${index + 1}: ${Math.round(latency)} ms`;
    label.firstChild.setAttribute("aria-label", `Turn ${index + 1}, ${Math.round(latency)} ms`);
    this.#scale();
  }

  #add(index, chosen) {
    const input = made("input", "hidden");
    Object.assign(input, { type: "radio", name: "turn", value: index, checked: chosen });
    const label = made("label", "");
    label.append(input, made("span", "pillar"), made("span", "number", `${index + 1}`));
    this.#root.append(label);
    if (chosen) this.#root.scrollLeft = this.#root.scrollWidth;
    return label;
  }

  /** Heights are shares of the slowest turn, but of no less than a little more than the budget. */
  #scale() {
    const most = Math.max(1.25 * this.#budget, ...this.#latencies);
    this.#latencies.forEach((latency, index) => {
      this.#root.children[index].style.setProperty("--height", `${(100 * latency) / most}%`);
    });
  }
}
