// The map's facts as tables: PoPs with what can be ordered of them, and the calls that were placed last.

import { answers, latencyOf, loadOf, placementOf, shareOf, statusOf } from "./fleet.js";
import { glyph } from "./map-picture.js";
import { clock } from "./tables.js";

const SHOWN = 30; // placements
const OLD_S = 2.5; // a report comes every second

function made(name, text = "", className = "") {
  return Object.assign(document.createElement(name), { textContent: text, className });
}

/** Cells carry their column's name, which stands before them where there is no room for columns. */
function cell(name, className = "") {
  const empty = made("td", "", className);
  empty.dataset.name = name;
  return empty;
}

/** Rows stay while figures change, so that the focus stays on their buttons. `onOrder(what, pop)`: "drain", "stop" or
 *  "start". `demo`: whether PoPs can be stopped and started. */
export function showPops(body, rows, { demo, onOrder }) {
  const there = new Map([...body.children].map((row) => [row.dataset.pop, row]));
  for (const row of rows) {
    const line = there.get(row.pop) ?? popLine(row.pop, onOrder);
    there.delete(row.pop);
    fill(line, row, demo);
    if (body.children[rows.indexOf(row)] !== line) body.insertBefore(line, body.children[rows.indexOf(row)] ?? null);
  }
  for (const line of there.values()) line.remove();
}

function popLine(pop, onOrder) {
  const line = made("tr");
  line.dataset.pop = pop;
  const head = made("th", "", "pop-name");
  head.scope = "row";
  head.tabIndex = -1; // gets the focus where no button is left that could
  const orders = cell("", "orders");
  for (const what of ["drain", "stop", "start"]) {
    const button = made("button", what[0].toUpperCase() + what.slice(1), "small");
    button.type = "button";
    button.dataset.order = what;
    button.setAttribute("aria-label", `${button.textContent} ${pop}`);
    button.addEventListener("click", () => onOrder(what, pop));
    orders.append(button);
  }
  line.append(head, cell("Status", "status"), cell("Calls", "load"), cell("Turn latency"), orders);
  return line;
}

function fill(line, row, demo) {
  const { text, tone } = statusOf(row);
  const [head, status, load, latency, orders] = line.children;
  head.replaceChildren(row.pop, made("small", [row.city, row.region].filter(Boolean).join(", ")));
  const old = row.age_s > OLD_S ? [made("small", `last heard ${Math.round(row.age_s)} s ago`)] : [];
  const words = made("span", text, tone);
  words.append(...old);
  status.replaceChildren(glyph(row), words);
  const bar = made("span", "", "bar-of");
  bar.hidden = !row.slots;
  bar.style.setProperty("--share", shareOf(row));
  load.replaceChildren(made("span", loadOf(row)), bar);
  latency.textContent = latencyOf(row);
  const focused = [...orders.children].find((button) => button === document.activeElement);
  const possible = { drain: answers(row) && row.status !== "draining", stop: demo && row.status !== "stopped",
    start: demo && row.status === "stopped" };
  for (const button of orders.children) button.hidden = !possible[button.dataset.order];
  if (focused?.hidden) (([...orders.children].find((button) => !button.hidden)) ?? head).focus();
}

/** The newest first. Rows stay as they are: a placement does not change. */
export function showPlacements(body, placed) {
  const there = new Map([...body.children].map((row) => [row.dataset.call, row]));
  const rows = placed.slice(0, SHOWN).map((one) => there.get(one.call) ?? placedLine(placementOf(one)));
  body.replaceChildren(...rows);
}

function placedLine(placement) {
  const line = made("tr");
  line.dataset.call = placement.call;
  const cells = [["Time", clock(placement.at)], ["Tenant", placement.tenant], ["Caller", placement.from],
    ["Sent to", placement.pop, "to"], ["Why", placement.why, "why"], ["Delay to PoP", placement.near, "number"],
    ["Answer", placement.turn, "number"], ["Others", placement.others]];
  line.append(...cells.map(([name, text, className]) => Object.assign(cell(name, className), { textContent: text })));
  return line;
}
