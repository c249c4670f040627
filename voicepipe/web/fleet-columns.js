// The table of PoPs: how it sorts. Pure.

import { caresOf, shareOf } from "./fleet.js";
import { costOf, p50Of, p95Of, rateOf } from "./fleet-figures.js";

/** What each column sorts by; null comes last. */
const VALUES = {
  pop: ({ pop }) => pop,
  region: ({ region, version }) => `${region ?? ""} ${version ?? ""}`,
  state: caresOf,
  calls: (row) => (row.slots ? shareOf(row) : null),
  next: ({ predicted_ms }) => predicted_ms,
  turns: ({ recent }) => recent?.turns ?? null,
  p50: p50Of,
  p95: p95Of,
  late: (row) => rateOf(row, "late"),
  cut_ins: (row) => rateOf(row, "cut_ins"),
  missed: (row) => rateOf(row, "missed"),
  lag: ({ recent }) => recent?.lag_ms ?? null,
  age: ({ age_s }) => age_s,
  cost: (row) => costOf(row)?.price ?? null,
};
const WORDS = ["pop", "region"]; // sorted from A on first, all others from the most

/** Rows in the order of a column, and where they are equal by name. `down`: the most comes first. */
export function sorted(rows, { by, down }) {
  const value = VALUES[by];
  const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
  return [...rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === null || b === null) return (a === null) - (b === null) || compare(one.pop, other.pop);
    return (down ? compare(b, a) : compare(a, b)) || compare(one.pop, other.pop);
  });
}

/** What a press on a column's head makes of the order: the other way round where it is sorted by that already. */
export function pressed(order, by) {
  return order.by === by ? { by, down: !order.down } : { by, down: !WORDS.includes(by) };
}
