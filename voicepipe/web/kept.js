// Kept calls as rows and words: the list, the facts of one call, what was said in it. Pure but for the elements it makes.

import { made } from "./elements.js";
import { remarksOf } from "./figures.js";
import { agentOf, clock, lasting, milliseconds, partyOf } from "./tables.js";
import { money } from "./tiles.js";
import { toolRows } from "./tools-used.js";

const ENDS = {
  caller: "by the caller", agent: "by the agent", no_input: "nobody spoke", transferred: "transferred",
  max_length: "too long", idle: "nothing was sent", shutdown: "server stopped", error: "by a fault", cut: "cut off",
  closed: "closed", not_begun: "before it began", "": "goes on",
};

/** How a call ended, in words. */
export function endOf(reason) {
  return ENDS[reason] ?? reason;
}

/** "27 Nov, 14:03:09", by the viewer's clock. */
export function moment(seconds) {
  const day = new Date(seconds * 1000).toLocaleDateString([], { day: "numeric", month: "short" });
  return `${day}, ${clock(seconds)}`;
}

/** A call that goes on has no cost yet, nor has one of a PoP whose price nobody has told. */
export function isPriced({ cost }) {
  return Number.isFinite(cost);
}

/** `onCall(id)`: a row was clicked, or its button pressed. `more`: after those that are there. */
export function showKept(body, calls, onCall, more) {
  const rows = calls.map((call) => row(call, onCall));
  if (more) body.append(...rows);
  else body.replaceChildren(...rows);
}

function row(call, onCall) {
  const made_ = made("tr", "");
  made_.dataset.call = call.id;
  made_.addEventListener("click", () => onCall(call.id));
  const began = Object.assign(made("button", "link", moment(call.began)), { type: "button", title: "Show this call" });
  const head = made("td", "");
  head.append(began);
  const who = made("td", "who", partyOf(call));
  who.append(made("small", "", [agentOf(call), call.pop].join(" · ")));
  const bad = call.reason === "error" || call.reason === "cut";
  const remarks = made("td", "remarks");
  remarks.append(...remarksOfCall(call).map(({ text, tone }) => made("span", tone, text)));
  made_.append(
    head, who, made("td", bad ? "late" : "", endOf(call.reason)), made("td", "number", lasted(call)),
    made("td", "number", String(call.turns)), made("td", "number", milliseconds(call.p95_ms)),
    made("td", "number cost", isPriced(call) ? money(call.cost) : "–"), remarks,
  );
  return made_;
}

/** What an operator looks for: [{text, tone}]. */
export function remarksOfCall({ late, missed, cut_ins: cutIns }) {
  return [
    late && { text: `${late} late`, tone: "late" },
    missed && { text: `${missed} missed`, tone: "late" },
    cutIns && { text: `${cutIns} cut in on`, tone: "cut" },
  ].filter(Boolean);
}

function lasted(call) {
  return lasting((call.ended ?? Date.now() / 1000) - call.began);
}

/** How the hook before the answer went; empty: the agent has none. */
function hookOf({ hook }) {
  if (!hook) return "";
  const went = hook.outcome === "answered" ? "answered" : `${hook.outcome}: ${hook.why}`;
  return `of ${hook.agent}, ${went}, after ${milliseconds(hook.ms)}`;
}

/** <dt>s and <dd>s. */
export function factsOf(record) {
  const network = record.network ?? {};
  const facts = [
    ["Began", moment(record.began)],
    ["Lasted", lasted(record)],
    ["Ended", [endOf(record.reason), record.transferred_to && `to ${record.transferred_to}`].filter(Boolean).join(" ")],
    ["Caller", [partyOf(record), record.called && `called ${record.called}`].filter(Boolean).join(", ")],
    ["Agent", `${[agentOf(record), ...(record.handed_to ?? [])].join(", then ")}, at ${record.pop} (${record.region})`],
    ["Hook", hookOf(record)],
    ["Tenant", record.tenant === "local" ? "" : record.tenant],
    ["Turns", [`${record.turns}`, record.p50_ms !== null && `p50 ${milliseconds(record.p50_ms)}`,
      record.p95_ms !== null && `p95 ${milliseconds(record.p95_ms)}`,
      ...remarksOfCall(record).map(({ text }) => text)].filter(Boolean).join(", ")],
    ["Network", [Number.isFinite(network.loss_percent) && `${network.loss_percent.toFixed(1)} % lost`,
      Number.isFinite(network.jitter_ms) && `${Math.round(network.jitter_ms)} ms jitter`].filter(Boolean).join(", ")],
    ["Cost", isPriced(record) ? money(record.cost) : ""],
    ["Variables", variablesOf(record)],
    ["Trace", record.trace ?? ""],
  ];
  return facts.filter(([, text]) => text).flatMap(([name, text]) => [made("dt", "", name), made("dd", "", text)]);
}

/** "plan: gold, patient: Ann". A PoP of an older version has none; empty ones tell nothing. */
function variablesOf({ variables = {} }) {
  return Object.entries(variables).filter(([, value]) => value).map((pair) => pair.join(": ")).join(", ");
}

/** <li>s, what was said in its order. `onTurn(full)`: somebody wants to see where a turn's time went. */
export function saidRows(record, onTurn) {
  return record.said.map((full) => {
    const item = made("li", "exchange");
    const lang = full.record?.language ?? "";
    if (full.spoken) item.append(words("Caller", full.heard ? "heard" : "heard none", full.heard || "(no words)", lang));
    else if (full.heard) item.append(words("Typed", "heard", full.heard, lang));
    item.append(...toolList(full.tools));
    item.append(words("Agent", full.answered ? "answered" : "answered none", full.answered || "(nothing)", lang));
    item.append(remarksLine(full, onTurn));
    return item;
  });
}

function toolList(tools) {
  if (!tools.length) return [];
  const list = made("ul", "tools");
  list.append(...toolRows(tools));
  return [list];
}

/** The words are apart from who said them: they may run from right to left. */
function words(who, className, text, lang) {
  const line = made("p", className);
  line.append(made("b", "", who), " ", Object.assign(made("bdi", "", text), { lang }));
  return line;
}

function remarksLine(full, onTurn) {
  const line = made("p", "remarks");
  if (full.spoken) {
    const took = full.turn.latency_ms === null ? "not timed" : milliseconds(full.turn.latency_ms);
    const shows = Object.assign(made("button", full.turn.late ? "link late" : "link", took),
      { type: "button", title: "Where this turn's time went" });
    shows.addEventListener("click", () => onTurn(full));
    line.append(shows, " ");
  }
  const shown = full.spoken ? remarksOf(full.turn) : [{ text: full.heard ? "" : "greeting", tone: "" }];
  line.append(...shown.filter(({ text }) => text).map(({ text, tone }) => made("span", tone ?? "", text)));
  if (full.status === "cancelled") line.append(made("span", "", "interrupted"));
  return line;
}
