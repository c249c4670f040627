// The map as a picture: land as a grid of dots, PoPs with their load, the caller, and calls as they are placed.

import { loadOf, latencyOf, shareOf, statusOf } from "./fleet.js";
import { arcBetween, labelSides, NORTH, placeAt, pointOf, SOUTH, spread } from "./geography.js";
import { landGrid } from "./world.js";

const SVG = document.querySelector("svg").namespaceURI;
const STEP = 2; // degrees between dots
const SHOWN_MS = 6000; // a call's line
const NARROW = 560; // pixels: below, labels are short
const SHAPES = {
  circle: "M0-5a5 5 0 1 0 .01 0Z",
  square: "M-4.5-4.5h9v9h-9Z",
  triangle: "M0-5.5L5.5 4.5h-11Z",
  diamond: "M0-6L6 0L0 6L-6 0Z",
  cross: "M-5-3.2L-3.2-5L0-1.8L3.2-5L5-3.2L1.8 0L5 3.2L3.2 5L0 1.8L-3.2 5L-5 3.2L-1.8 0Z",
};

function made(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** A status's shape on its own, for tables. */
export function glyph(row) {
  const { shape, tone } = statusOf(row);
  return made("svg", { class: `glyph ${tone}`, viewBox: "-7 -7 14 14", "aria-hidden": "true" },
    made("path", { d: SHAPES[shape] }));
}

export class Picture {
  #rows = [];
  #place = null;
  #chosen = "";
  #marks = new Map(); // PoP -> {key, mark}: one that stays as it is keeps its place, and with it the title that is shown

  /** `root`: the <svg>. `onPlace({latitude, longitude})`: somebody clicked there. */
  constructor(root, onPlace) {
    this.root = root;
    root.setAttribute("viewBox", `-180 ${-NORTH} 360 ${NORTH - SOUTH}`);
    this.calls = made("g", {});
    this.pops = made("g", {});
    this.caller = made("g", { class: "caller" });
    root.append(land(), this.calls, this.pops, this.caller);
    root.addEventListener("click", (event) => onPlace(this.#under(event)));
    new ResizeObserver(() => this.#redraw()).observe(root);
  }

  /** `chosen`: the PoP that got the last call. */
  draw(rows, place, chosen) {
    [this.#rows, this.#place, this.#chosen] = [rows, place, chosen];
    this.#redraw();
  }

  /** A call is placed: a line from the caller to the PoP, for a while. */
  call(from, to) {
    const line = made("path", { class: "arc", d: arcBetween(from, to), pathLength: 1 });
    const { x, y } = pointOf(to);
    const pulse = made("circle", { class: "pulse", cx: x, cy: y });
    this.calls.append(line, pulse);
    setTimeout(() => [line, pulse].forEach((one) => one.remove()), SHOWN_MS);
  }

  #under(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.root.getScreenCTM().inverse());
    return placeAt(at);
  }

  #redraw() {
    const width = this.root.clientWidth;
    if (!width) return;
    const unit = 360 / width; // degrees that a pixel is
    this.root.style.setProperty("--unit", unit);
    const narrow = width < NARROW;
    const shown = this.#rows.filter((row) => row.place);
    const points = spread(shown.map((row) => pointOf(row.place)), (narrow ? 17 : 27) * unit);
    const label = { wide: (narrow ? 58 : 104) * unit, tall: (narrow ? 15 : 30) * unit, end: 180 };
    const sides = labelSides(points, label);
    const marks = shown.map((row, at) => {
      const { x, y } = points[at];
      const transform = `translate(${x} ${y}) scale(${unit * (narrow ? 0.75 : 1)})`;
      return this.#kept(row, sides[at], narrow, transform);
    });
    if (marks.length !== this.pops.children.length || marks.some((mark, at) => mark !== this.pops.children[at])) {
      this.pops.replaceChildren(...marks);
    }
    this.caller.replaceChildren(...(this.#place ? [pin(pointOf(this.#place), unit)] : []));
  }

  #kept(row, side, narrow, transform) {
    const { status, calls, coming, slots } = row;
    const looks = [status, calls, coming, slots, latencyOf(row), row.pop === this.#chosen, side, narrow, transform];
    const key = JSON.stringify(looks);
    const before = this.#marks.get(row.pop);
    if (before?.key === key) return before.mark;
    const mark = this.#mark(row, side, narrow);
    mark.setAttribute("transform", transform);
    this.#marks.set(row.pop, { key, mark });
    return mark;
  }

  #mark(row, side, narrow) {
    const { text, shape, tone } = statusOf(row);
    const chosen = row.pop === this.#chosen ? " chosen" : "";
    const mark = made("g", { class: `pop ${tone}${chosen}`, "data-pop": row.pop, "data-status": row.status });
    mark.append(
      made("title", {}, `${row.pop}: ${text}; calls: ${loadOf(row)}; turn latency: ${latencyOf(row)}`),
      made("circle", { class: "halo", r: 17 }),
      made("circle", { class: "ring", r: 11 }),
      made("circle", { class: "load", r: 11, pathLength: 1, "stroke-dasharray": `${shareOf(row)} 1`,
        transform: "rotate(-90)" }),
      made("path", { class: "shape", d: SHAPES[shape] }),
    );
    const x = side === "right" ? 17 : -17;
    const words = made("text", { class: side });
    const line = (text, y, name) => words.append(made("tspan", { x, y, class: name }, text));
    line(narrow ? row.pop : `${row.pop} ${row.slots ? `${row.calls}/${row.slots}` : ""}`, narrow ? 5 : -2, "name");
    if (!narrow) line(row.predicted_ms === null || tone === "soft" ? text.split(/[:;]/)[0] : latencyOf(row), 12, "figure");
    mark.append(words);
    return mark;
  }
}

/** One path for all dots. */
function land() {
  const dots = landGrid({ north: NORTH, south: SOUTH, step: STEP }).map((place) => {
    const { x, y } = pointOf(place);
    return `M${x} ${y}h0`;
  });
  return made("path", { class: "land", d: dots.join("") });
}

function pin({ x, y }, unit) {
  return made("g", { transform: `translate(${x} ${y}) scale(${unit})` },
    made("path", { d: "M0 0C-2-7-8-9-8-15a8 8 0 1 1 16 0c0 6-6 8-8 15Z" }),
    made("circle", { class: "eye", cy: -15, r: 3 }));
}
