// The map as a picture: land as a grid of dots, PoPs with their load, the caller, and calls as they are placed.

import { statusOf } from "./fleet.js";
import { arcBetween, NORTH, placeAt, pointOf, SOUTH, spread } from "./geography.js";
import { labelled } from "./labels.js";
import { LINE, linesOf, made, markOf, titleOf } from "./map-marks.js";
import { landGrid } from "./world.js";

const STEP = 2; // degrees between dots
const SHOWN_MS = 6000; // a call's line
const NARROW = 560; // pixels: below, marks and labels are smaller
const MARK = 13; // pixels from the middle of a mark to its edge
const ROOM = 45; // pixels of the map's width for each mark, where they are as large as they can be
const GAP = 3;
const FONTS = { name: "650 13px", figure: "400 12px" };
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
      const names = `${row.pop === this.#chosen ? "chosen" : ""} ${row.pop === this.#pointed ? "pointed" : ""}`.trim();
      return this.#kept(row, { transform: `translate(${x} ${y}) scale(${unit})`, size, names, label: labels[at] });
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

  #kept(row, looks) {
    const { status, calls, coming, slots } = row;
    const key = JSON.stringify([status, calls, coming, slots, titleOf(row), looks]);
    const before = this.#marks.get(row.pop);
    if (before?.key === key) return before.mark;
    const mark = markOf(row, looks);
    this.#marks.set(row.pop, { key, mark });
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
