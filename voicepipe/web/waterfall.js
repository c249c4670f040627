// A turn on a time axis: where its milliseconds went. `layout` is pure, `draw` makes HTML of it.

const STEPS_MS = [50, 100, 200, 500, 1000, 2000, 5000];
const MOST_TICKS = 7;
const ROOM = 1.08; // a little air to the right of the last bar, or of the budget

/** Where everything stands, in percent of the axis: {ticks: [{ms, at}], rows: [{..., parts}], budget, wait}. A part is
 *  {hidden, left, width}: what ran inside the wait, and what the caller waited for. */
export function layout(stages, budgetMs) {
  const end = ROOM * Math.max(budgetMs, ...stages.map((stage) => stage.to));
  const step = STEPS_MS.find((ms) => end / ms <= MOST_TICKS) ?? end;
  const at = (ms) => (100 * Math.max(0, ms)) / end;
  const ticks = [];
  for (let ms = 0; ms <= end; ms += step) ticks.push({ ms, at: at(ms) });
  const part = (hidden, from, to) => ({ hidden, left: at(from), width: at(to) - at(from) });
  const rows = stages.map((stage) => {
    const parts = [part(true, stage.from, stage.until), part(false, stage.until, stage.to)];
    if (stage.awaited) return { ...stage, parts: [] };
    return { ...stage, parts: parts.filter(({ width }, i) => width > 0 || (i && stage.from === stage.to)) };
  });
  const wait = at(stages.find(({ kind }) => kind === "wait")?.to ?? 0);
  return { ticks, rows, budget: at(budgetMs), wait };
}

function element(className, text = "") {
  const made = document.createElement("div");
  made.className = className;
  made.textContent = text;
  return made;
}

function placed(className, left, text) {
  const made = element(className, text);
  made.style.left = `${left}%`;
  return made;
}

/** Replaces what is in `root`. The picture is one image to screen readers: the table beside it has the numbers. */
export function draw(root, stages, budgetMs, who = "you") {
  const { ticks, rows, budget, wait } = layout(stages, budgetMs);
  const lines = element("lines");
  const waiting = placed("waiting", 0);
  waiting.style.width = `${wait}%`;
  lines.append(waiting, ...ticks.map((tick) => placed("line", tick.at)), placed("line budget", budget));
  const head = element("head");
  head.append(placed("tick budget", budget, `${budgetMs} ms budget`));
  const [took, hidden] = [element("columns", "took"), element("columns", "hidden")];
  took.title = "ms from a stage's begin to its end";
  hidden.title = "ms of them that passed in the wait, and so cost nothing";
  head.append(took, hidden);
  const axis = element("axis");
  axis.append(...ticks.map((tick) => placed("tick", tick.at, `${tick.ms}`)));
  const picture = element("picture");
  picture.append(lines, head, ...rows.map(drawRow), axis, element("caption", `ms after ${who} stopped speaking`));
  picture.style.setProperty("--rows", rows.length);
  picture.setAttribute("role", "img");
  const spoken = rows.filter(({ awaited }) => !awaited).map(({ name, from, to }) => `${name} ${Math.round(from)} to ${Math.round(to)} ms`);
  picture.setAttribute("aria-label", spoken.join(", "));
  root.replaceChildren(picture);
}

function drawRow({ kind, name, short, title, from, to, until, awaited, parts }) {
  const track = element("track");
  for (const { hidden, left, width } of parts) {
    const bar = placed(`bar ${kind}${hidden ? " hid" : ""}`, left);
    bar.style.width = `${width}%`;
    track.append(bar);
  }
  const label = element("name");
  label.append(element("long", name), element("short", short));
  const row = element("row");
  const hid = Math.round(until - from);
  row.title = title;
  const took = awaited ? "…" : `${Math.round(to - from)}`;
  row.append(label, track, element("took", took), element("took soft", hid ? `${hid}` : ""));
  return row;
}
