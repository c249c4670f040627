// The last turn on a time axis: where its milliseconds went. `layout` is pure, `draw` makes HTML of it.

const STEPS_MS = [50, 100, 200, 500, 1000, 2000, 5000];
const MOST_TICKS = 7;
const ROOM = 1.08; // a little air to the right of the last bar, or of the budget

/** Where everything stands, in percent of the axis: {ticks: [{ms, at}], rows: [{..., left, width}], budget}. */
export function layout(stages, budgetMs) {
  const end = ROOM * Math.max(budgetMs, ...stages.map((stage) => stage.to));
  const step = STEPS_MS.find((ms) => end / ms <= MOST_TICKS) ?? end;
  const at = (ms) => (100 * Math.max(0, ms)) / end;
  const ticks = [];
  for (let ms = 0; ms <= end; ms += step) ticks.push({ ms, at: at(ms) });
  const rows = stages.map((stage) => ({ ...stage, left: at(stage.from), width: at(stage.to) - at(stage.from) }));
  return { ticks, rows, budget: at(budgetMs) };
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
  const { ticks, rows, budget } = layout(stages, budgetMs);
  const lines = element("lines");
  lines.append(...ticks.map((tick) => placed("line", tick.at)), placed("line budget", budget));
  const head = element("head");
  head.append(placed("tick budget", budget, `${budgetMs} ms budget`));
  const axis = element("axis");
  axis.append(...ticks.map((tick) => placed("tick", tick.at, `${tick.ms}`)));
  const picture = element("picture");
  picture.append(lines, head, ...rows.map(drawRow), axis, element("caption", `ms after ${who} stopped speaking`));
  picture.setAttribute("role", "img");
  const spoken = rows.map(({ name, from, to }) => `${name} ${Math.round(from)} to ${Math.round(to)} ms`);
  picture.setAttribute("aria-label", spoken.join(", "));
  root.replaceChildren(picture);
}

function drawRow({ kind, name, short, from, to, left, width }) {
  const bar = placed(`bar ${kind}`, left);
  bar.style.width = `${width}%`;
  const track = element("track");
  track.append(bar);
  const label = element("name");
  label.append(element("long", name), element("short", short));
  const row = element("row");
  row.append(label, track, element("took", `${Math.round(to - from)}`));
  return row;
}
