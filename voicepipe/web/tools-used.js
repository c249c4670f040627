// The agent's tools that ran for a reply: what the server tells of them, and how they are shown.

import { made } from "./elements.js";

const TOOL_KEY = "voicepipe.tool.";

/** Those that a `response.done` tells of: [{name, arguments, result, failed, took, early}]. `took`: ms, none while it
 *  runs; `early`: it was begun before the turn was over. */
export function toolsOf(response) {
  return Object.entries(response.metadata ?? {})
    .filter(([key]) => key.startsWith(TOOL_KEY))
    .map(([, value]) => {
      try {
        return JSON.parse(value);
      } catch {
        return null;
      }
    })
    .filter((use) => use?.name);
}

/** The model's JSON as "day: Sunday, people: 2"; as it is where it is something else, or was cut short. */
export function argumentsOf(text) {
  try {
    const given = JSON.parse(text || "{}");
    if (!given || typeof given !== "object" || Array.isArray(given)) return text;
    const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value));
    return Object.entries(given).map(([name, value]) => `${name}: ${plain(value)}`).join(", ");
  } catch {
    return text;
  }
}

/** What came of it, in words. */
export function outcomeOf({ result, took, failed }) {
  if (!Number.isFinite(took)) return "still running when the answer was over";
  return result || (failed ? "failed" : "no result");
}

/** <li>s, one for each tool. */
export function toolRows(uses) {
  return uses.map((use) => {
    const row = made("li", use.failed ? "tool failed" : "tool");
    const ms = Number.isFinite(use.took) ? `${Math.round(use.took)} ms` : "";
    const took = [use.early ? "read ahead" : "", ms].filter(Boolean).join(", ");
    row.append(
      made("code", "", `${use.name}(${argumentsOf(use.arguments)})`),
      made("bdi", "outcome", outcomeOf(use)),
      made("span", "took", took),
    );
    if (use.early) row.title = "Begun before it was sure that the turn was over: it only reads";
    return row;
  });
}
