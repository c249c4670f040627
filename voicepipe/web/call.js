// A call from the page's side: connects, and connects again with back-off when the line breaks.

import { closed, refused } from "./failures.js";
import { RealtimeClient, realtimeUrl } from "./realtime.js";

const BACK_OFF_S = [1, 2, 4, 8, 15];

export class Call {
  #client = null;
  #timer = 0;
  #tries = 0;
  #errorCode = "";
  #unsaid = []; // typed before the line was there

  /** `settings()` gives {model, key}. `onState(state, sentence)`: "idle", "connecting", "live", "waiting" (to try again)
   *  or "failed". `onEvent(event)`: every server event. */
  constructor({ settings, onState, onEvent }) {
    this.settings = settings;
    this.onState = onState;
    this.onEvent = onEvent;
    this.state = "idle";
  }

  start() {
    this.#tries = 0;
    this.#connect();
  }

  stop() {
    clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = null;
    client?.close();
    this.#enter("idle", "");
  }

  append(pcm) {
    this.#client?.append(pcm);
  }

  truncate(itemId, ms) {
    this.#client?.truncate(itemId, ms);
  }

  /** Connects first if there is no line. */
  say(text) {
    if (this.#client?.ready) return this.#client.say(text);
    this.#unsaid.push(text);
    if (this.state !== "connecting") this.start();
  }

  #connect() {
    clearTimeout(this.#timer);
    this.#errorCode = "";
    this.#enter("connecting", "");
    const { model, key } = this.settings();
    const client = new RealtimeClient(realtimeUrl(location, model), key, {
      onEvent: (event) => client === this.#client && this.#receive(event),
      onClose: (end) => client === this.#client && this.#ended(end, model, key),
    });
    this.#client = client;
  }

  #receive(event) {
    if (event.type === "error") this.#errorCode = event.error.code;
    this.onEvent(event);
    if (event.type !== "session.created") return;
    this.#tries = 0;
    this.#enter("live", "");
    for (const text of this.#unsaid.splice(0)) this.#client.say(text);
  }

  async #ended({ code, ready }, model, key) {
    const client = this.#client;
    const { sentence, retry } = ready ? closed(code, this.#errorCode) : await refused(model, key);
    if (client !== this.#client) return; // hung up, or started again, while we asked why
    this.#client = null;
    if (ready && code === 1000) return this.#enter("idle", sentence);
    if (!retry) return this.#enter("failed", sentence);
    const seconds = BACK_OFF_S[this.#tries++];
    if (seconds === undefined) return this.#enter("failed", `${sentence} Start again when it is back.`);
    this.#timer = setTimeout(() => this.#connect(), seconds * 1000);
    this.#enter("waiting", `${sentence} Trying again in ${seconds} s.`);
  }

  #enter(state, sentence) {
    if (state === "idle" || state === "failed") this.#unsaid = [];
    this.state = state;
    this.onState(state, sentence);
  }
}
