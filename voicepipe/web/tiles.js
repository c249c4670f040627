// The figures at a glance, in words: id of the element -> its text. Pure.

import { lasting } from "./tables.js";

/** "3 %", "0.4 %"; "–" where there is nothing to say it of. */
export function percent(share) {
  if (share === null) return "–";
  const value = 100 * share;
  return `${value && value < 9.95 ? value.toFixed(1) : Math.round(value)} %`;
}

export function counted(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

/** "12.30"; of less than 1 three digits: "0.0123"; below 1e-9 "0.00". */
export function money(amount) {
  const shown = Number(amount.toPrecision(3)); // 0.9996 reads 1.00.
  return amount.toFixed(shown >= 1e-9 && shown < 1 ? 2 - Math.floor(Math.log10(shown)) : 2);
}

function rounded(ms) {
  return ms === null ? "–" : `${Math.round(ms)}`;
}

export function tilesOf(view) {
  const { totals, shares } = view;
  const cutIn = `cut in on ${totals.cut_ins}`;
  const prepared = totals.hits + totals.misses;
  return {
    p50: rounded(totals.p50),
    "p50-of": totals.timed === 1 ? "the only turn" : "p50",
    p95: rounded(totals.timed < 20 ? null : totals.p95), // of fewer turns it would be the slowest one's name
    p99: rounded(totals.timed < 100 ? null : totals.p99),
    "latency-note": totals.turns
      ? `${counted(totals.timed, "timed turn")} · ${cutIn} (${percent(shares.cut_in)})${forgotten(view)}`
      : "no turns yet",
    "cut-ins": `${totals.cut_ins}`,
    "cut-ins-note": totals.turns ? `${percent(shares.cut_in)}, at most ${percent(shares.cut_in_bound)}` : "of no turns",
    late: `${totals.late}`,
    "late-note": `${totals.turns ? `${percent(shares.late)} ` : ""}over ${view.budget_ms} ms${asked(totals.by_request)}`,
    missed: `${totals.missed}`,
    hits: prepared ? percent(totals.hits / prepared) : "–",
    "hits-note": prepared ? `${totals.hits} of ${prepared} · ${counted(totals.discarded, "draft")} dropped` : "no replies yet",
    slots: `${view.slots_used} / ${view.slots}`,
    "slots-note": `${Math.round(view.predicted_ms)} ms predicted · ${view.refused} refused`,
    lag: `${view.loop_lag_p99_ms.toFixed(1)} ms`,
    ...costTile(view.cost),
  };
}

/** Of a minute of a call: its place alone, and all that the host cost, shared by the calls that there were. */
function costTile(cost) {
  if (!cost) return { cost: "", "cost-minute": "", "cost-idle": "" };
  const withIdle = cost.minutes ? ` · with idle ${money(cost.host_cost / cost.minutes)}` : "";
  return {
    cost: money(cost.price_per_hour),
    "cost-minute": `a call's minute ${money(cost.cost_per_minute)}${withIdle}`,
    "cost-idle": `${money(cost.host_cost)} in ${lasting(cost.counted_s)} · ${money(cost.idle_cost)} of it idle`,
  };
}

function asked(turns) {
  return turns ? ` · ${turns} waited as asked` : "";
}

function forgotten(view) {
  if (view.kept_from === null) return "";
  return ` · kept since ${new Date(view.kept_from * 1000).toLocaleTimeString([], { hour12: false })}`;
}
