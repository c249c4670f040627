// The Realtime conversation of a call, as OpenAI's GA convention has it, over any line: events out, events in.

import { REPLAYED, replayOf } from "./replay.js";

const RETRY_REPLY_MS = 250; // the server's reply may sound a little longer than its `response.done`

export class RealtimeClient {
  #line;
  #ready = false;
  #responseId = null; // of the response in progress
  #replyWanted = false; // a reply was asked for while another was in progress

  /** `dial({onEvent, onClose})` makes the line. `onEvent(event)` gets the server's events,
   *  `onClose({code, instead, ready})` the end; `ready`: the call had begun. */
  constructor(dial, { onEvent, onClose }) {
    this.onEvent = onEvent;
    this.#line = dial({
      onEvent: (event) => this.#receive(event),
      onClose: (end) => onClose({ ...end, ready: this.#ready }),
    });
  }

  get ready() {
    return this.#ready && this.#line.open;
  }

  listenTo(microphone) {
    this.#line.listenTo(microphone);
  }

  /** A typed message, and the reply to it: whatever sounds is cut. */
  say(text) {
    const content = [{ type: "input_text", text }];
    this.#line.silence();
    this.#line.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
    this.#reply();
  }

  /** What was said before, on another line. To be called as soon as the call has begun: then nobody is greeted. */
  replay(said) {
    const { events, owed } = replayOf(said);
    for (const event of events) this.#line.send(event);
    if (owed) this.#reply();
  }

  /** As the line's. */
  heard() {
    return this.#line.heard();
  }

  /** As the line's. */
  sent() {
    return this.#line.sent();
  }

  close() {
    this.#line.close();
  }

  #reply() {
    if (this.#responseId) {
      this.#replyWanted = true;
      this.#line.send({ type: "response.cancel" });
    } else {
      this.#line.send({ type: "response.create" });
    }
  }

  #receive(event) {
    switch (event.type) {
      case "session.created":
        this.#ready = true;
        break;
      case "response.created":
        this.#responseId = event.response.id;
        break;
      case "response.done":
        this.#responseId = null;
        if (this.#replyWanted) {
          this.#replyWanted = false;
          this.#reply();
        }
        break;
      case "conversation.item.truncated": // it does not say what of the text is left
        this.#line.send({ type: "conversation.item.retrieve", item_id: event.item_id });
        break;
      case "error":
        if (event.error.event_id === REPLAYED) return; // such as what a lock forbids
        if (event.error.code === "conversation_already_has_active_response") {
          setTimeout(() => this.#reply(), RETRY_REPLY_MS);
          return;
        }
    }
    this.onEvent(event);
  }
}
