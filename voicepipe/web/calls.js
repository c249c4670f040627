// Wires the page of kept calls: the list, by what is asked for; one call with all that was said; one turn of it.

import { factsOf, isPriced, saidRows, showKept } from "./kept.js";
import { ask, judged } from "./feed.js";
import { TurnDialog } from "./turn-dialog.js";

const $ = (id) => document.getElementById(id);
const LOST = "The server does not answer; try again.";
const BUDGET_MS = 300; // where the server does not say which it promises
const KEPT_NONE = "Nothing is kept that fits. Calls are listed from their answer on; a PoP keeps them for records.keep_days.";

const turnDialog = new TurnDialog();
let key = ""; // kept here alone
let next = null; // where the list goes on
let round = 0; // answers to earlier questions are not shown over later ones
let budget = BUDGET_MS;

async function list(from = null) {
  const asked = new URLSearchParams();
  const seconds = Number($("since").value);
  if (seconds) asked.set("since", Math.round(Date.now() / 1000 - seconds));
  for (const name of ["caller", "agent", "reason"]) {
    if ($(name).value.trim()) asked.set(name, $(name).value.trim());
  }
  if (from) asked.set("before", from);
  const mine = ++round;
  const { status, body } = await ask(`/v1/records?${asked}`, key);
  if (mine !== round) return;
  tell(status, body);
  if (status !== 200) return;
  $("board").hidden = false;
  showKept($("calls"), body.data, open, Boolean(from));
  const { dataset } = document.body;
  dataset.cost = body.data.some(isPriced) || (from && dataset.cost) ? "told" : "";
  next = body.next;
  $("older").hidden = !next;
  const none = !$("calls").children.length;
  $("calls").parentNode.hidden = none;
  $("calls-empty").hidden = !none;
  $("calls-empty").textContent = KEPT_NONE;
  if (body.missing?.length) {
    $("notice").textContent = `Not there: calls of ${body.missing.join(", ")}, which did not answer.`;
    $("notice").hidden = false;
  }
}

function tell(status, body) {
  const { state, sentence } = judged(status, Boolean(key), body?.error?.message ?? LOST);
  $("notice").textContent = sentence;
  $("notice").hidden = !sentence;
  $("unlock").hidden = state !== "locked";
  if (state === "locked") $("key").focus();
  document.body.dataset.state = state;
}

async function open(id) {
  history.replaceState(null, "", `#${id}`);
  const mine = ++round;
  const { status, body } = await ask(`/v1/records/${encodeURIComponent(id)}`, key);
  if (mine !== round) return;
  if (status === 401) return tell(status, body);
  const record = status === 200 ? body : null;
  const problem = record ? "" : (body?.error?.message ?? LOST);
  $("call-title").textContent = record ? `Call ${record.id}` : "Call";
  $("call-problem").textContent = problem;
  $("call-problem").hidden = !problem;
  $("call-body").hidden = Boolean(problem);
  if (record) {
    $("facts").replaceChildren(...factsOf(record));
    $("said").replaceChildren(...saidRows(record, (full) => turnDialog.show(full, budget)));
  }
  if (!$("call").open) $("call").showModal();
  $("call").scrollTop = 0;
}

async function begin() {
  await list();
  if (location.hash.length > 1 && document.body.dataset.state === "ok") open(decodeURIComponent(location.hash.slice(1)));
  const { status, body } = await ask("/v1/dashboard?minutes=5", key); // a directory has none
  if (status === 200) {
    budget = body.budget_ms ?? budget;
    $("pop").textContent = `${body.pop}, calls`;
  }
}

$("filter").addEventListener("submit", (event) => {
  event.preventDefault();
  list();
});
for (const id of ["since", "reason"]) $(id).addEventListener("change", () => list());
$("older").addEventListener("click", () => list(next));
$("unlock").addEventListener("submit", (event) => {
  event.preventDefault();
  key = $("key").value.trim();
  $("key").value = "";
  begin();
});
$("call").addEventListener("click", ({ target }) => target === $("call") && $("call").close()); // beside the card
$("call").addEventListener("close", () => history.replaceState(null, "", location.pathname));
addEventListener("hashchange", () => location.hash.length > 1 && open(decodeURIComponent(location.hash.slice(1))));

begin();
