// Wires the dashboard: figures from the server to tiles, charts and tables; a chosen turn to its waterfall.

import { Charts } from "./charts.js";
import { ask, Feed, LOST } from "./feed.js";
import { clock, milliseconds, showCalls, showCulprits, showTurns } from "./tables.js";
import { tilesOf } from "./tiles.js";
import { TurnDialog } from "./turn-dialog.js";

const $ = (id) => document.getElementById(id);
const STATES = { ok: "Taking calls", draining: "Draining: no new calls", starting: "Starting",
  engine_down: "An engine is being restarted: no new calls", full: "All slots are taken",
  late: "Answers are late: no new calls" };

let key = ""; // kept here alone
let view = null;
const turnDialog = new TurnDialog();

const charts = new Charts($, openTurn, (turn) => {
  $("chosen").textContent = `${clock(turn.at)}, ${milliseconds(turn.latency_ms)}; press Enter to show this turn`;
});
const feed = new Feed({
  asks: () => ({ path: `/v1/dashboard?minutes=${$("minutes").value}`, key }),
  everyMs: 2000,
  onView: show,
  onState: (state, sentence) => {
    $("notice").textContent = sentence;
    $("notice").hidden = !sentence;
    if (state === "locked" && $("unlock").hidden) {
      $("unlock").hidden = false;
      $("key").focus();
    }
    if (state === "ok") $("unlock").hidden = true;
    else $("state").textContent = state === "locked" ? "Locked" : "Not connected";
    document.body.dataset.state = state;
  },
});

$("minutes").addEventListener("change", () => feed.refresh());
$("unlock").addEventListener("submit", (event) => {
  event.preventDefault();
  key = $("key").value.trim();
  $("key").value = "";
  feed.refresh();
});
document.addEventListener("visibilitychange", () => !document.hidden && feed.refresh());

function show(fresh) {
  view = fresh;
  $("board").hidden = false;
  $("pop").textContent = view.pop;
  $("state").textContent = STATES[view.status] ?? view.status;
  document.body.dataset.status = view.status;
  for (const [id, plain] of Object.entries(tilesOf(view))) {
    const text = plain.replaceAll(" · ", "\u00a0· "); // no line begins with a dot
    if ($(id).textContent !== text) $(id).textContent = text;
  }
  document.body.dataset.cost = view.cost ? "told" : "";
  showCulprits($("culprits"), view.culprits);
  showCalls($("calls"), view.calls, view.now);
  showTurns($("turns"), view.turns, openTurn);
  for (const id of ["calls", "turns"]) {
    $(id).parentNode.hidden = !view[id].length;
    $(`${id}-empty`).hidden = view[id].length > 0;
  }
  charts.draw(view);
}

async function openTurn(id) {
  const { status, body } = await ask(`/v1/dashboard/turns/${encodeURIComponent(id)}`, key);
  if (status === 200) turnDialog.show(body, view.budget_ms);
  else turnDialog.lacks(body?.error?.message ?? LOST);
}

feed.refresh();
