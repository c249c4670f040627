// What the charts show, as Plotly takes it: {data, layout} from the server's figures. Pure; colours are given.

const DASHES = { p50: "solid", p95: "solid", p99: "dot" };
const TICKS_MIN = [1, 3, 10, 30];
const MOST_TICKS = 6;
const STAGES = [
  ["endpointing", "Endpointing", "wait"],
  ["asr", "ASR", "asr"],
  ["llm", "LLM", "llm"],
  ["tts", "TTS", "tts"],
  ["playout", "Playout", "playout"],
];

/** Plotly takes times without a zone as they stand: those of the viewer's clock. */
export function localTime(seconds) {
  const date = new Date(seconds * 1000);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 19).replace("T", " ");
}

/** Percentiles over time, and the listed turns as points that know which turn they are; `chosen`: the id of one. */
export function latencyFigure(view, colours, chosen = "") {
  const at = view.buckets.map((bucket) => localTime(bucket.at + view.bucket_s / 2));
  const lines = ["p50", "p95", "p99"].map((name) => ({
    type: "scatter",
    mode: "lines+markers",
    name,
    x: at,
    // One turn is no percentile: there it is only where the line goes on.
    y: view.buckets.map(({ figures }) => (figures.timed === 1 && name !== "p50" ? null : figures[name])),
    line: { color: colours[name], width: 2, dash: DASHES[name] },
    marker: { size: 4 },
    hovertemplate: `${name} %{y:.0f} ms<extra></extra>`,
  }));
  const data = [pointsOf(view, colours, chosen), ...lines];
  const layout = layoutOf(view, colours, "ms");
  layout.shapes = [budgetLine(view, colours)];
  // Without a background, which would hide a turn that was just late.
  layout.annotations.push({
    ...{ xref: "paper", x: 1, xanchor: "right", y: view.budget_ms, yanchor: "bottom", yshift: 2, showarrow: false },
    ...{ text: `${view.budget_ms} ms budget`, font: { color: colours.late, size: 12 } },
  });
  return { data, layout };
}

function pointsOf(view, colours, chosen) {
  const turns = pointTurns(view);
  const bad = (turn) => turn.late || turn.missed;
  return {
    type: "scatter",
    mode: "markers",
    name: "turn",
    x: turns.map((turn) => localTime(turn.at)),
    y: turns.map((turn) => turn.latency_ms),
    customdata: turns.map((turn) => turn.id),
    text: turns.map((turn) => remarksOf(turn).map((remark) => `, ${remark.text}`).join("")),
    marker: {
      size: turns.map((turn) => (turn.id === chosen ? 15 : bad(turn) || turn.cut_in ? 10 : 8)),
      color: turns.map((turn) => (bad(turn) ? colours.late : turn.cut_in ? colours.playout : colours.good)),
      symbol: turns.map((turn) => (turn.cut_in ? "x" : "circle")),
      opacity: 0.65,
      line: { color: colours.ink, width: turns.map((turn) => (turn.id === chosen ? 3 : 0)) },
    },
    hovertemplate: "turn %{y:.0f} ms%{text}<extra></extra>",
  };
}

/** The timed turns, oldest first: the chart's points, in the order in which arrow keys go through them. */
export function pointTurns(view) {
  return view.turns.filter((turn) => turn.latency_ms !== null && turn.at >= view.since).sort((a, b) => a.at - b.at);
}

/** The turn whose latency is nearest to `ms` in a bucket: the one that a percentile's point stands for. */
export function turnNear(view, bucket, ms) {
  const from = view.buckets[bucket].at;
  const turns = pointTurns(view).filter((turn) => turn.at >= from && turn.at < from + view.bucket_s);
  return turns.sort((a, b) => Math.abs(a.latency_ms - ms) - Math.abs(b.latency_ms - ms))[0] ?? null;
}

/** Turns that went wrong, stacked. */
export function outcomesFigure(view, colours) {
  const data = [
    ["late", "Late", colours.late],
    ["missed", "Missed", colours.ink],
    ["cut_ins", "Cut in", colours.playout],
  ].map(([field, name, color]) => bars(view, name, color, (bucket) => bucket.figures[field], "%{y}"));
  const layout = whole(stacked(view, colours, "turns"), data);
  const none = view.totals.turns && data.every(({ y }) => y.every((count) => !count));
  if (none) layout.annotations.push(middle("None: every answer came in time"));
  return { data, layout };
}

/** The stages' medians, stacked, and how much of the engines' work nobody waited for. */
export function stagesFigure(view, colours) {
  const data = STAGES.map(([field, name, colour]) =>
    bars(view, name, colours[colour], (bucket) => bucket.stages[field], "%{y:.0f} ms"),
  );
  data.push(dashes(view, "Hidden", colours.ink, (bucket) => bucket.stages.hidden, "%{y:.0f} ms"));
  return { data, layout: stacked(view, colours, "ms") };
}

/** Replies prepared in time and not, and drafts that were dropped. */
export function speculationFigure(view, colours) {
  const data = [
    ["hits", "Prepared in time", colours.good],
    ["misses", "Not in time", colours.wait],
  ].map(([field, name, color]) => bars(view, name, color, (bucket) => bucket.figures[field], "%{y}"));
  data.push(dashes(view, "Drafts dropped", colours.ink, (bucket) => bucket.figures.discarded || null, "%{y}"));
  return { data, layout: whole(stacked(view, colours, "replies"), data) };
}

/** What is to be said of a turn beside its latency: [{text, title, tone}]. */
export function remarksOf(turn) {
  const remarks = [];
  const add = (when, text, title, tone = "") => when && remarks.push({ text, title, tone });
  add(turn.cut_in, "cut in", "The answer began before the caller had finished", "cut");
  add(turn.missed, "missed", "There was no answer, or only the fallback", "late");
  add(turn.late, "late", "The answer began later than the budget allows", "late");
  add(turn.by_request, "waited as asked", "The client set how long to wait: this does not count as late");
  add(turn.speculation === "miss", "not prepared", "The answer was not ready when the caller's turn was over");
  return remarks;
}

function bars(view, name, color, of, format) {
  return {
    type: "bar",
    name,
    x: view.buckets.map((bucket) => localTime(bucket.at + view.bucket_s / 2)),
    y: view.buckets.map(of),
    marker: { color },
    hovertemplate: `${name} ${format}<extra></extra>`,
  };
}

/** A dash across each bar: beside what is stacked, not part of it. */
function dashes(view, name, color, of, format) {
  return {
    ...{ ...bars(view, name, color, of, format), type: "scatter", mode: "markers" },
    marker: { color, size: 9, symbol: "line-ew-open", line: { width: 2.5 } },
  };
}

function stacked(view, colours, unit) {
  return { ...layoutOf(view, colours, unit), barmode: "stack", bargap: 0.25 };
}

/** An axis of counts: no half turns. */
function whole(layout, data) {
  const top = Math.max(1, ...data[0].x.map((_, i) => data.reduce((sum, { y }) => sum + y[i], 0)));
  return { ...layout, yaxis: { ...layout.yaxis, tick0: 0, dtick: Math.ceil(top / 5) } };
}

function budgetLine(view, colours) {
  return {
    ...{ type: "line", xref: "paper", x0: 0, x1: 1, y0: view.budget_ms, y1: view.budget_ms },
    line: { color: colours.late, width: 2, dash: "dash" },
  };
}

function layoutOf(view, colours, unit) {
  const axis = { gridcolor: colours.line, linecolor: colours.line, zeroline: false, fixedrange: true, automargin: true };
  const end = view.since + view.buckets.length * view.bucket_s;
  return {
    paper_bgcolor: "transparent",
    plot_bgcolor: "transparent",
    font: { family: colours.font, size: 12, color: colours.soft },
    margin: { l: 48, r: 12, t: 8, b: 28 },
    hovermode: "closest",
    dragmode: false,
    annotations: view.totals.turns ? [] : [emptyNote(view)],
    hoverlabel: { bgcolor: colours.card, bordercolor: colours.line, font: { color: colours.ink, size: 13 } },
    legend: { orientation: "h", traceorder: "normal", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12 } },
    showlegend: true,
    xaxis: { ...axis, type: "date", range: [localTime(view.since), localTime(end)], dtick: tickMs(view), tickformat: "%H:%M", showgrid: false },
    yaxis: { ...axis, title: { text: unit, standoff: 6 }, rangemode: "tozero", visible: view.totals.turns > 0 },
    uirevision: "kept",
  };
}

function tickMs({ minutes }) {
  return 60000 * (TICKS_MIN.find((step) => minutes / step <= MOST_TICKS) ?? minutes);
}

function emptyNote(view) {
  return middle(`No turns in the last ${view.minutes} min`);
}

function middle(text) {
  const place = { xref: "paper", yref: "paper", x: 0.5, y: 0.5, xanchor: "center", yanchor: "middle", showarrow: false };
  return { ...place, text, font: { size: 14 } };
}
