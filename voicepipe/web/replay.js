// What was said in a call, and which tools were called, told to the PoP where it goes on. Pure.

/** Of the events that replay: whatever is refused of them, the call goes on without it. */
export const REPLAYED = "replayed";

const UNKNOWN = "The outcome is not known: the connection to the server that called this tool broke. It may have been " +
  "done. Do not call it again for this without asking the caller.";
const MOVED = "This call has just moved here from another server that broke down. Tools that it called for the " +
  "caller’s last request are not listed here, and may have been carried out. Before you do anything for that request " +
  "that cannot be undone, such as a booking, ask the caller whether to do it again.";

/** The tools' calls and results that the server tells of, and where they stand among the items of the conversation. The
 *  agent's own tools are not among them: the server keeps these to itself. */
export class ToolsCalled {
  #order = []; // ids of all items, as the server has them
  #items = new Map(); // by id

  /** Any server event. */
  hear({ type, item, item_id, previous_item_id }) {
    if (type === "conversation.item.deleted") {
      this.#order = this.#order.filter((id) => id !== item_id);
      this.#items.delete(item_id);
    }
    if (type !== "conversation.item.added" && type !== "conversation.item.done") return;
    if (!this.#order.includes(item.id)) {
      const before = previous_item_id ? this.#order.indexOf(previous_item_id) : -1;
      const at = previous_item_id && before < 0 ? this.#order.length : before + 1;
      this.#order.splice(at, 0, item.id);
    }
    if (item.type !== "message") this.#items.set(item.id, item);
  }

  /** `said`, as `replayOf` takes it, with these in their places. */
  among(said) {
    const places = new Map(said.map((one) => [one.id, [one]]));
    const first = [];
    let there = first;
    for (const id of this.#order) {
      there = places.get(id) ?? there;
      if (this.#items.has(id)) there.push(this.#items.get(id));
    }
    return [...first, ...[...places.values()].flat()];
  }

  /** The call is over. */
  clear() {
    this.#order = [];
    this.#items.clear();
  }
}

/** `said`: [{id, role, text, open}] in order; `open`: its speaker had not finished. Among them items as the server has
 *  them, {type: "function_call" or "function_call_output", ...}. {events, owed}: what the PoP is to be told before
 *  anything else, and whether it is to answer then, since the caller waits for it. */
export function replayOf(said) {
  let heard = said.filter(({ type, text }) => type || text);
  // Nobody was greeted properly by half a greeting: it is said again.
  if (heard.every(({ role }) => role === "assistant") && heard.at(-1)?.open) heard = [];
  const last = heard.at(-1);
  const owed = Boolean(last) && Boolean(last.type || last.role === "user" || last.open);
  const results = new Set(heard.filter(({ type }) => type === "function_call_output").map(({ call_id }) => call_id));
  const items = heard.flatMap((one) => (one.type ? tool(one, results) : [message(one)]));
  if (owed) items.push({ type: "message", role: "system", content: [{ type: "input_text", text: MOVED }] });
  const events = items.map((item) => ({ type: "conversation.item.create", event_id: REPLAYED, item }));
  return { events, owed };
}

/** Items keep their ids: the page knows them by these. */
function message({ id, role, text }) {
  return { id, type: "message", role, content: [{ type: role === "user" ? "input_text" : "output_text", text }] };
}

/** `results`: ids of the calls that have one. No call is left without: the model would call the tool again. */
function tool({ id, type, call_id, name, arguments: given, output }, results) {
  if (type === "function_call_output") return [{ id, type, call_id, output }];
  const call = { id, type, call_id, name, arguments: given };
  return results.has(call_id) ? [call] : [call, { type: "function_call_output", call_id, output: UNKNOWN }];
}
