// The map's facts as tables: PoPs with what can be ordered of them, and the calls that were placed last.

import { editionOf } from "./editions.js";
import { answers, loadOf, placementOf, shareOf, statusOf } from "./fleet.js";
import { costOf, p50Of, p95Of, rateOf, thousands } from "./fleet-figures.js";
import { glyph } from "./map-marks.js";
import { clock, lasting } from "./tables.js";
import { counted, percent } from "./tiles.js";

const SHOWN = 30; // placements
const OLD_S = 2.5; // a report comes every second
const ORDERS = ["drain", "stop", "start"];
const NUMBERS = ["next", "turns", "p50", "p95", "late", "cut_ins", "missed", "lag", "age", "cost"];
const WHAT = { late: "late", cut_ins: "cut in on", missed: "missed" };
const MOST = { late: 0.05, cut_ins: 0.05, missed: 0.02 }; // above, a share stands out; of few turns none does
const FEW = 20;
const LAG_MS = 20; // callers hear it from about there on

function made(name, text = "", className = "") {
  return Object.assign(document.createElement(name), { textContent: text, className });
}

/** What the marks of the map mean, as far as it shows them. */
export function showLegend(list, states) {
  const items = states.map((state) => {
    const item = made("li", "", state.tone);
    item.append(glyph(state), state.text);
    item.title = state.note;
    return item;
  });
  list.replaceChildren(...items);
}

/** Lines stay while figures change, so that the focus stays in them. `onOrder(what, pop)`: "drain", "stop" or "start".
 *  `demo`: whether PoPs can be stopped and started. `newest`: the edition that they should go by. `stay`: lines stay where they are, whatever the order of the rows. */
export function showPops(body, rows, { demo, newest, onOrder, stay }) {
  const lines = new Map([...body.children].map((line) => [line.dataset.pop, line]));
  const before = [...lines.keys()];
  const placeOf = ({ pop }) => (lines.has(pop) ? before.indexOf(pop) : before.length);
  const shown = stay ? [...rows].sort((one, other) => placeOf(one) - placeOf(other)) : rows;
  shown.forEach((row, at) => {
    const line = lines.get(row.pop) ?? popLine(row.pop, onOrder);
    lines.delete(row.pop);
    fill(line, row, demo, newest);
    if (body.children[at] !== line) body.insertBefore(line, body.children[at] ?? null);
  });
  for (const line of lines.values()) line.remove();
}

function popLine(pop, onOrder) {
  const line = made("tr");
  line.dataset.pop = pop;
  const head = made("th", "", "pop-name");
  head.scope = "row";
  head.tabIndex = -1; // gets the focus where no button is left that could
  const orders = made("td", "", "orders");
  for (const what of ORDERS) {
    const button = made("button", what[0].toUpperCase() + what.slice(1), "small");
    button.type = "button";
    button.dataset.order = what;
    button.setAttribute("aria-label", `${button.textContent} ${pop}`);
    button.addEventListener("click", () => onOrder(what, pop));
    orders.append(button);
  }
  const cells = NUMBERS.map((name) => made("td", "", `number of-${name.replace("_", "-")}`));
  const words = ["region", "status", "load"].map((name) => made("td", "", name));
  line.append(head, ...words, ...cells, orders);
  return line;
}

function fill(line, row, demo, newest) {
  const [head, region, status, load, next, turns, p50, p95, late, cutIns, missed, lag, age, cost, orders] = line.children;
  named(head, row);
  const beside = [row.city, row.version].filter(Boolean).join(", ");
  region.replaceChildren(row.region ?? "", ...(beside ? [made("small", beside)] : []));
  const state = statusOf(row);
  status.replaceChildren(glyph(state), made("span", state.text, state.tone));
  status.title = state.note;
  const edition = editionOf(row, newest);
  if (edition.says) status.append(Object.assign(made("small", edition.says, edition.differs ? "late" : ""), { title: edition.note }));
  load.replaceChildren(made("span", loadOf(row)), bar(shareOf(row), Boolean(row.slots)));
  figure(next, row.predicted_ms === null ? null : `${Math.round(row.predicted_ms)}`, row.predicted_ms > row.budget_ms);
  figure(turns, row.recent && thousands(row.recent.turns));
  figure(p50, rounded(p50Of(row)), p50Of(row) > row.budget_ms);
  budgeted(p95, row);
  for (const [cell, what] of [[late, "late"], [cutIns, "cut_ins"], [missed, "missed"]]) rate(cell, row, what);
  figure(lag, row.recent && row.recent.lag_ms.toFixed(1), row.recent?.lag_ms > LAG_MS);
  figure(age, row.age_s === null ? null : row.age_s < 10 ? `${row.age_s.toFixed(1)} s` : lasting(row.age_s), row.age_s > OLD_S);
  const price = costOf(row);
  figure(cost, price && price.price.toFixed(2));
  if (price) cost.append(made("small", ` ${price.idle.toFixed(2)} idle`));
  showOrders(orders, head, { drain: answers(row) && row.status !== "draining", stop: demo && row.status !== "stopped",
    start: demo && row.status === "stopped" });
}

/** Its name, which opens its own dashboard. */
function named(head, { pop, url }) {
  const address = /^https?:/.test(url ?? "") ? `${url}/dashboard` : "";
  if (head.firstChild && head.dataset.address === address) return; // the focus may be there
  head.dataset.address = address;
  const link = made("a", pop);
  Object.assign(link, { href: address, target: "_blank", rel: "noopener", title: `The dashboard of ${pop}, in a new tab` });
  head.replaceChildren(address ? link : pop);
}

function rounded(ms) {
  return ms === null ? null : `${Math.round(ms)}`;
}

function figure(cell, text, isBad = false) {
  cell.textContent = text ?? "–";
  cell.classList.toggle("bad", Boolean(text && isBad));
  cell.classList.toggle("none", !text);
}

/** p95 and the budget; the bar is full where the budget is used up. */
function budgeted(cell, row) {
  const ms = p95Of(row);
  figure(cell, rounded(ms), ms > row.budget_ms);
  if (ms !== null) cell.append(made("small", ` of ${Math.round(row.budget_ms)}`), bar(ms / row.budget_ms));
}

function rate(cell, row, what) {
  const share = rateOf(row, what);
  figure(cell, share === null ? null : percent(share), share > MOST[what] && row.recent.turns >= FEW);
  cell.classList.toggle("none", !share);
  const of = what === "late" ? row.recent?.judged : row.recent?.turns;
  cell.title = share === null ? "" : `${thousands(row.recent[what])} of ${counted(of, "turn")} ${WHAT[what]}`;
}

function bar(share, isShown = true) {
  const line = made("span", "", "bar-of");
  line.hidden = !isShown;
  line.style.setProperty("--share", Math.min(1, share));
  return line;
}

function showOrders(cell, head, possible) {
  const focused = [...cell.children].find((button) => button === document.activeElement);
  for (const button of cell.children) button.hidden = !possible[button.dataset.order];
  if (focused?.hidden) (([...cell.children].find((button) => !button.hidden)) ?? head).focus();
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
  for (const [name, text, className = ""] of cells) {
    const cell = made("td", text, className);
    cell.dataset.name = name; // stands before it where there is no room for columns
    line.append(cell);
  }
  return line;
}
