// The map as a picture: land as a grid of dots, PoPs with their load, the caller, and calls as they are placed.

import { latencyOf, loadOf, shareOf, statusOf } from "./fleet.js";
import { p95Of } from "./fleet-figures.js";
import { arcBetween, NORTH, placeAt, pointOf, SOUTH, spread } from "./geography.js";
import { labelled } from "./labels.js";
import { landGrid } from "./world.js";

const SVG = document.querySelector("svg").namespaceURI;
const STEP = 2; // degrees between dots
const SHOWN_MS = 6000; // a call's line
const NARROW = 560; // pixels: below, marks and labels are smaller
const MARK = 13; // pixels from the middle of a mark to its edge
const ROOM = 45; // pixels of the map's width for each mark, where they are as large as they can be
const LINE = 15; // pixels of a label's line
const GAP = 3;
const FONTS = { name: "650 13px", figure: "400 12px" };
const SHAPES = {
  circle: "M0-5a5 5 0 1 0 .01 0Z",
  square: "M-4.5-4.5h9v9h-9Z",
  triangle: "M0-5.5L5.5 4.5h-11Z",
  diamond: "M0-6L6 0L0 6L-6 0Z",
  drop: "M0 5.5L5.5-4.5h-11Z",
  bar: "M-5.5-1.9h11v3.8h-11Z",
  bolt: "M1.8-6L-4.6 1.2H-.4L-1.8 6L4.6-1.2H.4Z",
  cross: "M-5-3.2L-3.2-5L0-1.8L3.2-5L5-3.2L1.8 0L5 3.2L3.2 5L0 1.8L-3.2 5L-5 3.2L-1.8 0Z",
};

function made(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** A state's shape on its own, for tables. */
export function glyph({ shape, tone }) {
  return made("svg", { class: `glyph ${tone}`, viewBox: "-7 -7 14 14", "aria-hidden": "true" },
    made("path", { d: SHAPES[shape] }));
}

export class Picture {
  #rows = [];
  #place = null;
  #chosen = "";
  #pointed = "";
  #marks = new Map(); // PoP -> {key, mark}: one that stays as it is keeps its place, and with it the title that is shown
  #pen = document.createElement("canvas").getContext("2d"); // measures labels

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

  /** A PoP stands out, and has its label; "": none does. */
  point(pop) {
    if (pop === this.#pointed) return;
    this.#pointed = pop;
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
    const shown = this.#rows.filter((row) => row.place);
    const size = Math.min(width < NARROW ? 0.75 : 1, Math.max(0.4, Math.sqrt(width / (ROOM * shown.length))));
    const points = spread(shown.map((row) => pointOf(row.place)), 2 * MARK * size * unit);
    const labels = this.#labels(shown, points, unit, size, width < NARROW ? 0.85 : 1);
    const marks = shown.map((row, at) => {
      const { x, y } = points[at];
      return this.#kept(row, { ...labels[at], size, transform: `translate(${x} ${y}) scale(${unit})` });
    });
    const pointed = shown.findIndex((row) => row.pop === this.#pointed);
    if (pointed >= 0) marks.push(...marks.splice(pointed, 1)); // above all others
    if (marks.length !== this.pops.children.length || marks.some((mark, at) => mark !== this.pops.children[at])) {
      this.pops.replaceChildren(...marks);
    }
    this.caller.replaceChildren(...(this.#place ? [pin(pointOf(this.#place), unit)] : []));
  }

  /** For each row {lines, text, anchor, x, y}: as many lines as have room, and where they stand, in pixels from its mark;
   *  `text`: how large they are. */
  #labels(rows, points, unit, size, text) {
    const words = rows.map(linesOf); // of each, by size
    const marks = rows.map((row, at) => {
      const sizes = words[at].map((lines) => ({
        wide: this.#wide(lines) * text * unit,
        tall: LINE * lines.length * text * unit,
      }));
      const always = row.pop === this.#pointed;
      const weight = always ? 3 : row.pop === this.#chosen ? 2 : statusOf(row).tone === "late" ? 1 : 0;
      return { ...points[at], r: (MARK * size + GAP) * unit, sizes, weight, always };
    });
    const bounds = { west: -180, east: 180, north: -NORTH, south: -SOUTH };
    return labelled(marks, bounds).map((found, at) => {
      if (!found) return { lines: [] };
      const [x, y] = [found.x - points[at].x, found.y - points[at].y].map((degrees) => degrees / unit);
      return { lines: words[at][found.size], text, anchor: found.anchor, x, y };
    });
  }

  #wide(lines) {
    const family = getComputedStyle(this.root).fontFamily;
    const wide = lines.map(({ name, text }) => {
      this.#pen.font = `${FONTS[name]} ${family}`;
      return this.#pen.measureText(text.replace(/\d/g, "0")).width; // so that no label moves with every figure
    });
    return Math.max(...wide) + 2;
  }

  #kept(row, label) {
    const { status, calls, coming, slots } = row;
    const stands = [row.pop === this.#chosen, row.pop === this.#pointed];
    const key = JSON.stringify([status, calls, coming, slots, titleOf(row), stands, label]);
    const before = this.#marks.get(row.pop);
    if (before?.key === key) return before.mark;
    const mark = this.#mark(row, label);
    this.#marks.set(row.pop, { key, mark });
    return mark;
  }

  #mark(row, { transform, size, ...label }) {
    const { shape, tone } = statusOf(row);
    const chosen = `${row.pop === this.#chosen ? " chosen" : ""}${row.pop === this.#pointed ? " pointed" : ""}`;
    const mark = made("g", { class: `pop ${tone}${chosen}`, transform, "data-pop": row.pop, "data-status": row.status },
      made("title", {}, titleOf(row)),
      made("g", { transform: `scale(${size})` },
        made("circle", { class: "halo", r: 17 }),
        made("circle", { class: "ring", r: 11 }),
        made("circle", { class: "load", r: 11, pathLength: 1, "stroke-dasharray": `${shareOf(row)} 1`,
          transform: "rotate(-90)" }),
        made("path", { class: "shape", d: SHAPES[shape] })));
    if (label.lines.length) mark.append(labelOf(label));
    return mark;
  }
}

/** What may stand beside a mark, the shortest first: its name, and load; below how late it answers, or what is the matter. */
function linesOf(row) {
  const [bare, loaded] = [row.pop, `${row.pop} ${row.calls}/${row.slots}`].map((text) => ({ name: "name", text }));
  const figure = { name: "figure", text: ["ok", "late"].includes(row.status) ? howLate(row) : statusOf(row).text };
  return row.slots ? [[bare], [loaded], [loaded, figure]] : [[bare], [bare, figure]];
}

/** Its p95, or what is predicted where that is not known or the reason for its state. */
function howLate(row) {
  const p95 = p95Of(row);
  return p95 === null || row.status === "late" ? latencyOf(row) : `p95 ${Math.round(p95)} of ${Math.round(row.budget_ms)} ms`;
}

function titleOf(row) {
  const { text, note } = statusOf(row);
  const p95 = p95Of(row);
  const told = [`${text}${note && `: ${note}`}`, `calls: ${loadOf(row)}`, `next call predicted: ${latencyOf(row)}`];
  if (p95 !== null) told.push(`p95: ${Math.round(p95)} ms`);
  return `${row.pop}: ${told.join("; ")}`;
}

function labelOf({ lines, text, anchor, x, y }) {
  return made("text", { class: anchor, transform: `translate(${x} ${y}) scale(${text})` },
    ...lines.map(({ name, text }, at) => made("tspan", { x: 0, y: LINE * at + 11.5, class: name }, text)));
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
