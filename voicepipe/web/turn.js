// What a turn's record says, in words and numbers. Pure. Times are milliseconds after the caller's last voiced sample.

const RECORD_KEY = "voicepipe.turn";
export const BUDGET_MS = 300;

const STAGES = [
  // kind, name, the same where there is little room, begins, ends, what it is
  ["wait", "Endpointing", "Endpointing", null, "at_commit", "The silence until it was sure of the turn's end"],
  ["asr", "Speech recognition", "Recognition", "at_settle", "at_words", "Until the words were settled"],
  ["llm", "Language model", "Model", "at_prepare", "at_phrase", "Until the first phrase of the answer was written"],
  ["tts", "Speech synthesis", "Synthesis", "at_phrase", "at_speech", "Until the first sound of that phrase was made"],
  ["playout", "Playout", "Playout", "at_commit", "at_audible", "From the turn's end to the first sound of the answer"],
];
const WORK = new Set(["asr", "llm", "tts"]);
const LADDER = {
  short: "first phrase shortened",
  acknowledge: "acknowledged first",
  fallback: "fallback reply",
  stall: "stalled in mid-reply",
};

/** The record in a `response.created` or `response.done`, or null: other servers have none. */
export function recordOf(response) {
  try {
    const record = JSON.parse(response.metadata?.[RECORD_KEY] ?? "null");
    return record && typeof record === "object" ? record : null;
  } catch {
    return null;
  }
}

/** A spoken turn that was answered, with a time that means something; a greeting or a typed message is none. */
export function isMeasured(record) {
  return Number.isFinite(record?.turn_latency) && Number.isFinite(record.at_commit);
}

/** [{kind, name, short, title, from, to, until}] of the stages that happened. What of a stage lies before `until` ran
 *  inside the wait of endpointing, which the caller would have had without it. `awaited`: it is still to be told. */
export function stagesOf(record) {
  const commit = record.at_commit ?? -Infinity;
  return STAGES.map(([kind, name, short, begins, ends, title]) => {
    const [from, to] = [begins ? record[begins] : 0, record[ends]];
    if (record.open && WORK.has(kind) && !Number.isFinite(to)) {
      return { kind, name, short, title, from: 0, to: 0, until: 0, awaited: true };
    }
    const until = WORK.has(kind) ? Math.min(to, Math.max(from, commit)) : from;
    return { kind, name, short, title, from, to, until };
  }).filter(({ from, to }) => Number.isFinite(from) && Number.isFinite(to));
}

/** All that the engines did until the first sound is told. */
export function knowsTheWork(record) {
  return STAGES.every(([kind, , , , ends]) => !WORK.has(kind) || Number.isFinite(record[ends]));
}

/** Of the engines' time, what passed before the turn was confirmed: nobody waited for it. */
export function hiddenMs(stages) {
  return stages.reduce((sum, { from, until }) => sum + until - from, 0);
}

/** Short facts about the turn: [{text, tone, title}], tone "good", "late" or "". `who` spoke: "you" or "the caller". */
export function chipsOf(record, { budget = BUDGET_MS, who = "you" } = {}) {
  const chips = [];
  const add = (when, text, title, tone = "") => when && chips.push({ text, title, tone });
  const late = record.turn_latency > budget;
  const goal = `An answer is to begin within ${budget} ms of the last sound`;
  add(record.turn_latency <= budget, `within ${budget} ms`, goal, "good");
  add(late && record.by_request, "waited as the client asked", "The client set how long to wait: this does not count as late");
  add(late && !record.by_request, `over ${budget} ms`, goal, "late");
  const silence = "An answer can be prepared in the silence, before it is sure that the turn is over";
  add(record.speculation === "hit", "prepared while listening", silence, "good");
  add(record.speculation === "miss", `prepared after ${who} had stopped`, silence);
  const draft = `A draft is an answer that was prepared and not used, since ${who} went on`;
  add(record.discarded === 1, "1 draft dropped", draft);
  add(record.discarded > 1, `${record.discarded} drafts dropped`, draft);
  add(record.ladder, LADDER[record.ladder] ?? record.ladder, "What was done since the answer was not ready in time", "late");
  add(record.language, record.language, "The language that is spoken now, by its tag");
  add(record.reopened, `reopened, ${who} had not finished`, "The answer began too early, and was withdrawn");
  return chips;
}

/** Why the turn was confirmed when it was, and what was done by then, in a sentence each; "" if it was not. */
export function whyOf(record, who = "you") {
  if (!Number.isFinite(record.at_commit)) return "";
  const heard = record.by_page ? pageSays(record) : "";
  if (record.by_page && record.confident === undefined) return heard; // and the server has said nothing yet
  const whose = who === "you" ? "your" : `${who}'s`;
  const wait = `It waited ${Math.round(record.at_commit)} ms after ${whose} last sound`;
  const sure = `${record.confident ? "sure" : "not sure"} that ${who} had finished`;
  const reason = record.endpoint_reason && record.endpoint_reason !== "sure" ? ` (${record.endpoint_reason})` : "";
  const hidden = Math.round(hiddenMs(stagesOf(record)));
  const done = hidden ? ` By then the engines had worked for ${hidden} ms.` : "";
  return `${wait}, ${sure}${reason}.${done} ${heard}`.trim();
}

function pageSays(record) {
  const heard = `The answer began ${Math.round(record.turn_latency)} ms after your last sound, as this page measured it.`;
  const awaited = stagesOf(record).some((stage) => stage.awaited);
  return heard + (awaited ? " What else the server did in that time is told when the answer is over." : "");
}

/** All measured turns of a call in one line. Latency is never told without the turns in which it interrupted. */
export function tallyOf(records) {
  if (!records.length) return "";
  const sorted = records.map((record) => record.turn_latency).sort((a, b) => a - b);
  const median = (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.floor(sorted.length / 2)]) / 2;
  const reopened = records.filter((record) => record.reopened).length;
  if (records.length === 1) return `1 turn · cut in on ${reopened}`;
  return `${records.length} turns · median ${Math.round(median)} ms · cut in on ${reopened}`;
}
