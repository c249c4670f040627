// What stands for a PoP: on the map a mark and its label, in tables a shape.

import { latencyOf, loadOf, shareOf, statusOf } from "./fleet.js";
import { p95Of } from "./fleet-figures.js";

const SVG = document.querySelector("svg").namespaceURI;
export const LINE = 15; // pixels of a label's line
const SHAPES = {
  circle: "M0-5a5 5 0 1 0 .01 0Z",
  square: "M-4.5-4.5h9v9h-9Z",
  triangle: "M0-5.5L5.5 4.5h-11Z",
  diamond: "M0-6L6 0L0 6L-6 0Z",
  drop: "M0 5.5L5.5-4.5h-11Z",
  bar: "M-5.5-1.9h11v3.8h-11Z",
  bolt: "M1.8-6L-4.6 1.2H-.4L-1.8 6L4.6-1.2H.4Z",
  hourglass: "M-5-5.5h10L1.2 0L5 5.5h-10L-1.2 0Z",
  half: "M-1.5-5.5a5.5 5.5 0 0 1 0 11Z",
  cross: "M-5-3.2L-3.2-5L0-1.8L3.2-5L5-3.2L1.8 0L5 3.2L3.2 5L0 1.8L-3.2 5L-5 3.2L-1.8 0Z",
};

export function made(name, attributes, ...children) {
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

/** `names`: classes besides. `label`: {lines, text, anchor, x, y}: its lines, none where there is no label; how large it is;
 *  where it stands, in pixels from the mark. */
export function markOf(row, { transform, size, names, label }) {
  const { shape, tone } = statusOf(row);
  const mark = made("g", { class: `pop ${tone} ${names}`, transform, "data-pop": row.pop, "data-status": row.status },
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

/** What a label may say, the shortest first: the name, and load; below how late the PoP answers, or what is the matter. */
export function linesOf(row) {
  const [bare, loaded] = [row.pop, `${row.pop} ${row.calls}/${row.slots}`].map((text) => ({ name: "name", text }));
  const figure = { name: "figure", text: ["ok", "late"].includes(row.status) ? howLate(row) : statusOf(row).text };
  return row.slots ? [[bare], [loaded], [loaded, figure]] : [[bare], [bare, figure]];
}

/** Its p95, or what is predicted where that is not known or the reason for its state. */
function howLate(row) {
  const p95 = p95Of(row);
  return p95 === null || row.status === "late" ? latencyOf(row) : `p95 ${Math.round(p95)} of ${Math.round(row.budget_ms)} ms`;
}

/** All that is known of it. */
export function titleOf(row) {
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
