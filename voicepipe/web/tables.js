// Tables of calls and turns. Rows of turns stay as they are while others come, so that the focus stays on them.

import { remarksOf } from "./figures.js";

const SHOWN = 50; // turns
const LINES = { sip: "SIP", twilio: "Twilio", telnyx: "Telnyx", webrtc: "WebRTC", websocket: "WebSocket" };

function made(name, text = "", className = "") {
  return Object.assign(document.createElement(name), { textContent: text, className });
}

/** The viewer's clock: 14:03:09. */
export function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });
}

/** How long a call lasts: "42 s", "3 min", "1 h 5 min". */
export function lasting(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.floor(seconds))} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function milliseconds(ms) {
  return ms === null ? "–" : `${Math.round(ms)} ms`;
}

/** Whose agent: without tenants everybody's is "local". */
export function agentOf({ agent, tenant }) {
  return tenant === "local" ? agent : `${agent} (${tenant})`;
}

/** What makes callers wait, in the server's words; an element that stays as it is is not read out again. */
export function showCulprits(list, culprits) {
  const said = culprits.map(({ says }) => says);
  list.hidden = !said.length;
  if (said.join() === [...list.children].map((item) => item.textContent).join()) return;
  list.replaceChildren(...said.map((says) => made("li", says)));
}

/** By which kind of line, for phones from which number. */
export function partyOf({ line, caller }) {
  return `${LINES[line] ?? line} ${caller}`.trim();
}

export function showCalls(body, calls, now) {
  const rows = calls.map((call) => {
    const row = made("tr");
    row.append(
      whoOf(call),
      made("td", lasting(now - call.since)),
      made("td", call.turns, "number"),
      made("td", milliseconds(call.latency_ms), "number"),
    );
    return row;
  });
  body.replaceChildren(...rows);
}

/** By which kind of line, for phones from which number; the agent, and how the network fares where the line knows it. */
function whoOf(call) {
  const cell = made("td", partyOf(call), "who");
  cell.append(made("small", [agentOf(call), call.network].filter(Boolean).join(" · ")));
  return cell;
}

/** Newest first. `onTurn(id)`: a row was clicked, or its button pressed. */
export function showTurns(body, turns, onTurn) {
  const there = new Map([...body.children].map((row) => [row.dataset.turn, row]));
  const shown = turns.slice(0, SHOWN);
  let next = body.firstChild;
  for (const turn of shown) {
    const row = there.get(turn.id) ?? turnRow(turn, onTurn);
    there.delete(turn.id);
    row.lastChild.replaceChildren(...remarksOf(turn).map(remark));
    if (row === next) next = row.nextSibling;
    else body.insertBefore(row, next);
  }
  for (const row of there.values()) row.remove();
}

function remark({ text, title, tone }) {
  return Object.assign(made("span", text, tone), { title });
}

function turnRow(turn, onTurn) {
  const row = made("tr");
  row.dataset.turn = turn.id;
  row.addEventListener("click", () => onTurn(turn.id));
  const time = made("button", clock(turn.at), "link");
  time.type = "button";
  time.title = "Show this turn";
  const head = made("td");
  head.append(time);
  const latency = made("td", milliseconds(turn.latency_ms), turn.late ? "number late" : "number");
  row.append(head, made("td", agentOf(turn), "whose"), latency, made("td", "", "remarks"));
  return row;
}
