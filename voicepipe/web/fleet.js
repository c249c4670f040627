// What a directory says of its PoPs and of the calls that it has placed, in words. Pure.

import { p95Of } from "./fleet-figures.js";
import { placeName } from "./geography.js";

/** What each status is called, and what that means. Those come first that an operator should look at first. */
const STATUS = {
  lost: { text: "lost", note: "it reports no more, and has not said that it ends", shape: "bar", tone: "late" },
  silent: { text: "silent", note: "it reports no more, or the directory is cut off", shape: "bar", tone: "late" },
  engine_down: { text: "engine down", note: "an engine does not work", shape: "bolt", tone: "late" },
  failing: { text: "turns fail", note: "a last resort: its turns fail, or failed a moment ago", shape: "hourglass", tone: "late" },
  late: { text: "answers late", note: "a last resort: one more call is predicted over the budget", shape: "triangle", tone: "late" },
  over: { text: "over budget", note: "it takes calls, but its p95 is over the budget", shape: "drop", tone: "late" },
  full: { text: "full", note: "every slot is taken", shape: "square", tone: "late" },
  recovering: { text: "recovering", note: "its turns failed lately: it gets few calls, and then more by degrees", shape: "half", tone: "soft" },
  stopped: { text: "stopped", note: "by the demo", shape: "cross", tone: "soft" },
  gone: { text: "gone", note: "it is not heard of any more", shape: "cross", tone: "soft" },
  draining: { text: "draining", note: "it takes no new calls", shape: "diamond", tone: "soft" },
  starting: { text: "starting", note: "it takes no calls yet", shape: "diamond", tone: "soft" },
  ok: { text: "takes calls", note: "", shape: "circle", tone: "good" },
};
const CARES = Object.keys(STATUS).reverse();
const UNKNOWN = {
  calls: 0, coming: 0, slots: 0, predicted_ms: null, budget_ms: null, age_s: null, recent: null, price_per_hour: 0,
};
const WHY = {
  nearest: "the nearest in time",
  shares: "the nearest is filling, this one is nearly as near",
  limited: "it gets a share of the calls, and this is one of them",
  "least late": "no PoP would answer in time: this one comes closest",
};
const TAKES = ["ok", "late"];

/** {text, note, shape, tone}: a status is told by words and by a shape, and by a colour only besides. */
export function statusOf(row) {
  const name = statusName(row);
  return CARES.includes(name) ? STATUS[name] : { text: name, note: "", shape: "triangle", tone: "late" };
}

function statusName(row) {
  if (["ok", "late"].includes(row.status) && row.share < 1) return row.share ? "recovering" : "failing";
  return row.status === "ok" && p95Of(row) > row.budget_ms ? "over" : row.status;
}

/** As `statusOf`: of each state that one of the rows has, those that want to be looked at first. */
export function statesOf(rows) {
  const most = [...rows].sort((one, other) => caresOf(other) - caresOf(one)).map(statusOf);
  return most.filter(({ text }, at) => most.findIndex((other) => other.text === text) === at);
}

/** How much a PoP wants to be looked at: the more, the greater. */
export function caresOf(row) {
  const name = statusName(row);
  return CARES.includes(name) ? CARES.indexOf(name) : CARES.length;
}

/** Whether a caller who is sent there now finds somebody. */
export function answers(row) {
  return !["stopped", "gone", "lost", "starting"].includes(row.status);
}

/** A row for each PoP that is heard of, and for each that was. Of those that are not, the status is "lost" where the
 *  directory says so, else "gone". `before`: what this gave last. `demo`: the PoPs of GET /v1/demo, where the directory is
 *  the demo's; it knows which of them were stopped. */
export function fleetOf(before, { pops, lost }, demo = []) {
  const now = new Map([
    ...lost.map(({ pop, age_s }) => [pop, { ...UNKNOWN, status: "lost", age_s }]),
    ...pops.map((row) => [row.pop, row]),
  ]);
  const rows = new Map();
  for (const row of [...before, ...demo, ...lost, ...pops]) {
    rows.set(row.pop, { ...rows.get(row.pop), ...row, ...(now.get(row.pop) ?? { ...UNKNOWN, status: "gone" }) });
  }
  for (const { pop, state } of demo) {
    if (state === "stopped" || state === "starting") rows.get(pop).status = state;
  }
  return [...rows.values()].sort((one, other) => (one.pop < other.pop ? -1 : 1));
}

/** "2 of 4", and how many are on their way. */
export function loadOf({ calls, coming, slots }) {
  if (!slots) return "–";
  return `${calls} of ${slots}${coming ? ` + ${coming} coming` : ""}`;
}

/** 0..1, calls on their way among them. */
export function shareOf({ calls, coming, slots }) {
  return slots ? Math.min(1, (calls + coming) / slots) : 0;
}

/** What the next call is predicted to bring. */
export function latencyOf({ predicted_ms, budget_ms }) {
  return predicted_ms === null ? "–" : `${Math.round(predicted_ms)} of ${Math.round(budget_ms)} ms`;
}

/** The whole fleet in a few words. */
export function summaryOf(rows) {
  const taking = rows.filter((row) => TAKES.includes(row.status)).length;
  if (!taking) return "No PoP takes calls";
  return taking === 1 ? "1 PoP takes calls" : `${taking} PoPs take calls`;
}

/** A placement as the list shows it. */
export function placementOf(placed) {
  return {
    call: placed.call,
    at: placed.at,
    tenant: placed.tenant,
    from: placed.place ? placeName(placed.place) : "not known",
    pop: placed.pop,
    why: WHY[placed.why] ?? placed.why,
    near: `${Math.round(placed.near_ms)} ms`,
    turn: `${Math.round(placed.turn_ms)} ms`,
    others: placed.others.join(", ") || "none",
  };
}

/** The PoP that a call which was placed has gone to: the first that answers of those that it may go to. */
export function reachedOf({ pop, others }, rows) {
  const dead = new Set(rows.filter((row) => !answers(row)).map((row) => row.pop));
  return [pop, ...others].find((one) => !dead.has(one)) ?? "";
}

/** What a caller does with the directory's answer: {pop, sentence}. `rows`: as `fleetOf`; a PoP that was stopped a moment
 *  ago is still named, and the caller goes on to the next one. */
export function answerOf({ candidates, degraded }, rows) {
  const [first, ...others] = candidates;
  const pop = reachedOf({ pop: first.pop, others: others.map((other) => other.pop) }, rows);
  const estimate = (one) => `${one.pop} (${Math.round(one.turn_ms_est)} ms)`;
  const said = [`The directory names ${estimate(first)}`];
  if (others.length) said.push(`, then ${others.map(estimate).join(" and ")}`);
  said.push(". In brackets: from the caller’s last word to the answer, as estimated.");
  if (degraded) said.push(" None of them is likely to answer in time.");
  if (pop !== first.pop) {
    said.push(` ${first.pop} has stopped, and the directory does not know it yet: the caller finds nobody there`);
    said.push(pop ? `, and goes on to ${pop}.` : ".");
  }
  return { pop, sentence: said.join("") };
}
