// A call from the page's side: connects, over another kind of line if need be, and again with back-off when it breaks.

import { RemoteSpeaker, Speaker } from "./audio.js";
import { closed, refused, unfitForWebSocket } from "./failures.js";
import { RealtimeClient } from "./realtime.js";
import { WebRtcLine } from "./webrtc.js";
import { WebSocketLine } from "./websocket.js";

const BACK_OFF_S = [1, 2, 4, 8, 15];
const LINES = { webrtc: WebRtcLine, websocket: WebSocketLine };

export class Call {
  #speakers = { webrtc: new RemoteSpeaker(), websocket: new Speaker() };
  #client = null;
  #timer = 0;
  #tries = 0;
  #errorCode = "";
  #unsaid = []; // typed before the line was there

  /** `settings()` gives {model, key, voice, line}; `line` is a key of LINES. `onState(state, sentence)`: "idle",
   *  "connecting", "live", "waiting" (to try again) or "failed". `onEvent(event)`: every server event without sound.
   *  `onInstead()`: from now on `line` is to be "websocket". */
  constructor({ settings, microphone, onState, onEvent, onInstead }) {
    this.settings = settings;
    this.microphone = microphone;
    this.onState = onState;
    this.onEvent = onEvent;
    this.onInstead = onInstead;
    this.state = "idle";
  }

  /** Must be called from a click or a key press, or browsers keep the page silent. */
  unlock() {
    for (const speaker of Object.values(this.#speakers)) speaker.unlock();
  }

  start() {
    this.#tries = 0;
    this.#connect();
  }

  stop() {
    this.#leave();
    this.#enter("idle", "");
  }

  /** The microphone was opened. */
  listen() {
    if (this.state === "live" && this.microphone.open) this.#client.listenTo(this.microphone);
  }

  /** Connects first if there is no line. */
  say(text) {
    if (this.#client?.ready) return this.#client.say(text);
    this.#unsaid.push(text);
    if (this.state !== "connecting") this.start();
  }

  /** The agent can be heard now. */
  get sounding() {
    return Object.values(this.#speakers).some((speaker) => speaker.sounding);
  }

  get rms() {
    return Math.max(...Object.values(this.#speakers).map((speaker) => speaker.rms));
  }

  /** `sentence`: what the caller should know of a line that works all the same. */
  #connect(sentence = "") {
    this.#leave();
    this.#errorCode = "";
    const { model, key, voice, line } = this.settings();
    const problem = line === "websocket" ? unfitForWebSocket(key) : "";
    if (problem) return this.#enter("failed", `${sentence} ${problem}`.trim());
    this.#enter("connecting", sentence);
    const dial = (handlers) => new LINES[line]({ model, key, voice }, this.#speakers[line], handlers);
    const client = new RealtimeClient(dial, {
      onEvent: (event) => client === this.#client && this.#receive(event, sentence),
      onClose: (end) => client === this.#client && this.#ended(end, model, key),
    });
    this.#client = client;
  }

  /** Whatever line there is, or is to be tried again. */
  #leave() {
    clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = null;
    client?.close();
  }

  #receive(event, sentence) {
    if (event.type === "error") this.#errorCode = event.error.code;
    this.onEvent(event);
    if (event.type !== "session.created") return;
    this.#tries = 0;
    this.#enter("live", sentence);
    this.listen();
    for (const text of this.#unsaid.splice(0)) this.#client.say(text);
  }

  async #ended({ code, instead, ready }, model, key) {
    const client = this.#client;
    if (instead) {
      this.onInstead();
      return this.#connect(instead);
    }
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
