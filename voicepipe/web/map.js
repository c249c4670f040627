// Wires the fleet's dashboard: what the directory hears of PoPs and places, to the totals, the picture and the tables.

import { driftOf } from "./editions.js";
import { ask, Feed, LOST } from "./feed.js";
import { answerOf, fleetOf, reachedOf, statesOf, summaryOf } from "./fleet.js";
import { pressed, sorted } from "./fleet-columns.js";
import { fleetTilesOf } from "./fleet-figures.js";
import { Caller } from "./map-caller.js";
import { Picture } from "./map-picture.js";
import { showLegend, showPlacements, showPops } from "./map-tables.js";

const $ = (id) => document.getElementById(id);
const CUT_OFF = "This directory seems to be cut off from its PoPs. It goes on with what it heard last.";
const KEYLESS = "Only a tenant’s key lets a call in, and this page has none: the playground asks for it.";
const DONE = {
  drain: (pop) => `${pop} takes no new calls, and ends with its last one.`,
  stop: (pop) => `${pop} is dead. The directory gives a PoP up 5 s after its last report.`,
  start: (pop) => `${pop} is starting, which takes a second or two.`,
};

let key = ""; // kept here alone
let rows = [];
let newest = null; // edition; null: the directory has none
let demo = null; // its PoPs; null: this directory is not the demo's
let isDemo; // undefined: not known yet
let views = 0;
let seen = null; // ids of calls that are on the map or were
let last = ""; // the PoP that got the newest call
let order = { by: "pop", down: false }; // of the table

const picture = new Picture($("world"), (place) => caller.choose(place));
const caller = new Caller(draw);
const feed = new Feed({
  asks: () => ({ path: "/v1/pops", key }),
  everyMs: 1000,
  onView: show,
  onState: (state, sentence) => {
    if (state !== "ok") {
      views += 1; // what is still asked for is not shown over this
      notice(sentence);
    } // else the view says whether there is something to tell
    if (state === "locked" && $("unlock").hidden) {
      $("unlock").hidden = false;
      $("key").focus();
    }
    if (state === "ok") $("unlock").hidden = true;
    else tell("state", state === "locked" ? "Locked" : "Not connected");
    document.body.dataset.state = state;
  },
});

/** Screen readers read it whenever it is set. */
function tell(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

function notice(sentence) {
  tell("notice", sentence);
  $("notice").hidden = !sentence;
}

async function show(view) {
  const mine = ++views;
  if (isDemo !== false) {
    const { status, body } = await ask("/v1/demo", key);
    isDemo = status === 200 ? true : status === 404 ? false : isDemo;
    demo = status === 200 ? body.pops : demo;
    if (mine !== views) return; // a later one is shown already
  }
  rows = fleetOf(rows, view, demo ?? []);
  newest = view.edition ?? null;
  notice([view.cut_off ? CUT_OFF : "", driftOf(rows, newest)].filter(Boolean).join(" "));
  $("board").hidden = false;
  tell("state", summaryOf(rows));
  document.body.dataset.status = rows.some((row) => row.status === "ok") && !view.cut_off ? "ok" : "";
  for (const [id, text] of Object.entries(fleetTilesOf(rows))) tell(`total-${id}`, text);
  document.body.dataset.cost = rows.some(({ price_per_hour }) => price_per_hour > 0) ? "told" : "";
  showTable($("pops").matches(":hover, :focus-within")); // no line goes from under a pointer
  showCalls(view.placed);
  draw();
  showLegend($("legend"), statesOf(rows));
}

function draw() {
  picture.draw(rows, caller.place, last);
}

/** `stay`: whether lines stay where they are. */
function showTable(stay) {
  showPops($("pops"), sorted(rows, order), { demo: Boolean(demo), newest, onOrder: give, stay });
}

/** Lines for the calls that are new; what was placed before the page was opened is in the table alone. */
function showCalls(placed) {
  const fresh = seen ? placed.filter(({ call }) => !seen.has(call)) : [];
  seen = new Set(placed.map(({ call }) => call));
  last = placed.length ? reachedOf(placed[0], rows) : "";
  for (const call of fresh) {
    const to = rows.find((row) => row.pop === reachedOf(call, rows))?.place;
    if (call.place && to) picture.call(call.place, to);
  }
  showPlacements($("placed"), placed);
  $("placed").parentNode.hidden = !placed.length;
  $("placed-empty").hidden = placed.length > 0;
}

// The table.

for (const button of document.querySelectorAll("#fleet .sort")) {
  button.addEventListener("click", () => {
    order = pressed(order, button.dataset.by);
    document.querySelector("#fleet [aria-sort]").removeAttribute("aria-sort");
    button.parentNode.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    showTable(false);
  });
}
for (const event of ["pointerover", "focusin"]) {
  $("pops").addEventListener(event, ({ target }) => picture.point(target.closest("tr")?.dataset.pop ?? ""));
}
for (const event of ["pointerleave", "focusout"]) $("pops").addEventListener(event, () => picture.point(""));

// What is asked of the directory.

$("call").addEventListener("click", async () => {
  const { status, body } = await ask("/v1/calls", key, { kind: "webrtc", ...(caller.place && { place: caller.place }) });
  if (status !== 200) {
    $("named").textContent = status === 401 ? KEYLESS : (body?.error?.message ?? LOST);
    if (status === 401) {
      $("call").hidden = true; // it would be answered the same
      $("talk").focus();
    }
    return;
  }
  const { pop, sentence } = answerOf(body, rows);
  $("named").textContent = sentence;
  $("named").dataset.pop = pop;
  feed.refresh();
});

async function give(what, pop) {
  if (what === "drain" && !demo && !confirm(`Drain ${pop}? It takes no new calls and ends with its last one.`)) return;
  const path = what === "drain" ? "/v1/pops" : "/v1/demo/pops";
  const { status, body } = await ask(`${path}/${encodeURIComponent(pop)}/${what}`, key, {});
  $("order").textContent = status === 202 ? DONE[what](pop) : (body?.error?.message ?? LOST);
  feed.refresh();
}

$("unlock").addEventListener("submit", (event) => {
  event.preventDefault();
  key = $("key").value.trim();
  $("key").value = "";
  feed.refresh();
});
document.addEventListener("visibilitychange", () => !document.hidden && feed.refresh());

feed.refresh();
