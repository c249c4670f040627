// Figures of PoPs, and of all of them together. Pure.

import { percent } from "./tiles.js";

const FEWEST = 20; // timed turns: of fewer, p95 would be the slowest one's name
const NAMED = 3;

/** Of the last 5 minutes' turns, in ms; null where too few were timed. */
export function p50Of({ recent }) {
  return recent?.p50_ms ?? null;
}

export function p95Of({ recent }) {
  return recent && recent.timed >= FEWEST ? recent.p95_ms : null;
}

/** The share of the last 5 minutes' turns that were "late", "cut_ins" or "missed"; null of none. */
export function rateOf({ recent }, what) {
  const of = what === "late" ? recent?.judged : recent?.turns;
  return of ? recent[what] / of : null;
}

/** {price, idle}, of an hour: what the host costs, and what of it its free slots do. null: nobody has told the price. */
export function costOf({ price_per_hour: price, calls, slots }) {
  return price > 0 && slots ? { price, idle: price * (1 - Math.min(1, calls / slots)) } : null;
}

/** What all PoPs add up to. Free slots are those of PoPs that take calls. `worst`: the row whose p95 takes the most of
 *  its budget; null: no PoP has answered enough turns. */
export function totalsOf(rows) {
  const sum = (of, some = rows) => some.reduce((total, row) => total + (of(row) ?? 0), 0);
  const known = rows.filter((row) => p95Of(row) !== null);
  const open = rows.filter(({ status }) => status === "ok");
  const used = (row) => p95Of(row) / row.budget_ms;
  const priced = rows.map(costOf).filter(Boolean);
  return {
    calls: sum((row) => row.calls),
    slots: sum((row) => row.slots),
    free: sum(({ slots, calls, coming }) => Math.max(0, slots - calls - coming), open),
    open: open.length,
    worst: known.length ? known.reduce((worst, row) => (used(row) > used(worst) ? row : worst)) : null,
    silent: rows.filter(({ status }) => status === "lost" || status === "silent"),
    turns: sum(({ recent }) => recent?.turns),
    judged: sum(({ recent }) => recent?.judged),
    late: sum(({ recent }) => recent?.late),
    cut_ins: sum(({ recent }) => recent?.cut_ins),
    missed: sum(({ recent }) => recent?.missed),
    cost: priced.length ? { price: sum(({ price }) => price, priced), idle: sum(({ idle }) => idle, priced) } : null,
  };
}

/** The totals in words: id of the element -> its text. */
export function fleetTilesOf(rows) {
  const { calls, slots, free, open, worst, silent, turns, judged, late, cut_ins, missed, cost } = totalsOf(rows);
  const names = silent.slice(0, NAMED).map(({ pop }) => pop).join(", ");
  const of = (count, all) => percent(all ? count / all : null);
  const ofTurns = (all) => `of ${thousands(all)} ${all === 1 ? "turn" : "turns"}`;
  return {
    calls: thousands(calls),
    "calls-note": `of ${thousands(slots)} slots`,
    free: thousands(free),
    "free-note": `in ${open} ${open === 1 ? "PoP" : "PoPs"}`,
    worst: worst ? `${Math.round(p95Of(worst))} ms` : "–",
    "worst-note": worst ? `${worst.pop}, of ${Math.round(worst.budget_ms)} ms` : "too few turns",
    late: of(late, judged),
    "late-note": ofTurns(judged),
    "cut-ins": of(cut_ins, turns),
    "cut-ins-note": ofTurns(turns),
    missed: of(missed, turns),
    "missed-note": ofTurns(turns),
    silent: `${silent.length}`,
    "silent-note": silent.length > NAMED ? `${names} and ${silent.length - NAMED} more` : names || "all report",
    cost: cost ? cost.price.toFixed(2) : "",
    "cost-note": cost ? `${cost.idle.toFixed(2)} of it idle` : "",
  };
}

/** "16,899". */
export function thousands(count) {
  return count.toLocaleString("en");
}
