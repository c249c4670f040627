// A call from the page's side: connects, over another kind of line if need be, and again with back-off when it breaks.
// What a directory has placed goes on at another PoP, with its conversation, when its own one dies.

import { RemoteSpeaker, Speaker } from "./audio.js";
import { closed, movedOn, refused, triesNext, unfitForWebSocket } from "./failures.js";
import { Heartbeat } from "./heartbeat.js";
import { RealtimeClient } from "./realtime.js";
import { ToolsCalled } from "./replay.js";
import { WebRtcLine } from "./webrtc.js";
import { WebSocketLine } from "./websocket.js";

const BACK_OFF_S = [1, 2, 4, 8, 15];
const AT_ONCE_AFTER_MS = 5000; // a call that breaks sooner may be what PoPs die of: the next one is not hurried
const LINES = { webrtc: WebRtcLine, websocket: WebSocketLine };

export class Call {
  #speakers = { webrtc: new RemoteSpeaker(), websocket: new Speaker() };
  #client = null;
  #heartbeat = null;
  #round = 0; // of connecting: answers to earlier questions do not count
  #timer = 0;
  #tries = 0;
  #errorCode = "";
  #unsaid = []; // typed before the line was there
  #liveSince = 0;
  #tools = new ToolsCalled();
  #broken = null; // {from, said}: the PoP that a call had, and its conversation, until it has another

  /** `settings()` gives {model, key, voice, line}; `line` is a key of LINES. `places`: where calls go. `conversation`
   *  has {said, unsent} of the call. `onState(state, sentence)`: "idle", "connecting", "live", "waiting" (to try again)
   *  or "failed". `onEvent(event)`: every server event without sound. `onInstead()`: from now on `line` is to be
   *  "websocket". `onTrip(name, ms)`: the PoP that has the call is so far away; "": none that a directory named. */
  constructor({ settings, microphone, places, conversation, onState, onEvent, onInstead, onTrip }) {
    Object.assign(this, { settings, microphone, places, conversation, onState, onEvent, onInstead, onTrip });
    this.state = "idle";
  }

  /** It is live, or was and will be: its conversation is one. */
  get goesOn() {
    return this.state === "live" || this.#broken !== null;
  }

  /** Must be called from a click or a key press, or browsers keep the page silent. */
  unlock() {
    for (const speaker of Object.values(this.#speakers)) speaker.unlock();
  }

  start() {
    this.#tries = 0;
    this.places.begin();
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

  sent() { // as the line's
    return this.#client?.sent();
  }

  /** The agent can be heard now. */
  get sounding() {
    return Object.values(this.#speakers).some((speaker) => speaker.sounding);
  }

  get rms() {
    return Math.max(...Object.values(this.#speakers).map((speaker) => speaker.rms));
  }

  /** `sentence`: what the caller should know of a line that works all the same. */
  async #connect(sentence = "") {
    const round = this.#leave();
    this.#errorCode = "";
    const { model, key, voice, line } = this.settings();
    this.#enter("connecting", sentence);
    const { at, problem } = await this.places.next({ line, model, key });
    if (round !== this.#round) return; // hung up, or started again
    if (problem) {
      this.places.begin(); // next time nobody has been tried
      return this.#tryAgain(problem);
    }
    const unfit = line === "websocket" ? unfitForWebSocket(at.token) : "";
    if (unfit) return this.#enter("failed", `${sentence} ${unfit}`.trim());
    const dial = (handlers) => new LINES[line]({ at, model, key, voice }, this.#speakers[line], handlers);
    const client = new RealtimeClient(dial, {
      onEvent: (event) => client === this.#client && this.#receive(event, at, sentence),
      onClose: (end) => client === this.#client && this.#ended(end, at, sentence),
    });
    this.#client = client;
  }

  /** Whatever line there is, or is to be tried again. The number of the next round. */
  #leave() {
    clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = null;
    client?.close();
    return ++this.#round;
  }

  #receive(event, at, sentence) {
    if (event.type === "error") this.#errorCode = event.error.code;
    this.#tools.hear(event);
    this.onEvent(event);
    if (event.type === "session.created") this.#begun(at, sentence);
  }

  #begun(at, sentence) {
    const { from, said } = this.#broken ?? {};
    this.#broken = null;
    this.#tries = 0;
    this.#liveSince = performance.now();
    this.places.took(at);
    if (said) this.#client.replay(said);
    else this.#tools.clear();
    this.#enter("live", said ? movedOn(from, at.name) : sentence);
    this.listen();
    for (const text of this.#unsaid.splice(0)) this.#client.say(text);
    if (at.pop) this.#watch(at);
  }

  /** Notice that the PoP is dead before its line does. */
  #watch(at) {
    const client = this.#client;
    this.#heartbeat = new Heartbeat(at.probe, {
      heard: () => client.heard(),
      onTrip: (ms) => this.onTrip(at.name, ms),
      onDead: () => this.#ended({ code: 1006, ready: true }, at),
    });
  }

  async #ended({ code, instead, status, ready }, at, sentence) {
    if (instead) {
      this.onInstead();
      this.places.begin();
      return this.#connect(instead);
    }
    if (ready) return this.#over(code, at);
    if (at.pop && triesNext(status, this.places.hasAnother)) return this.#connect(sentence);
    const { model, key } = this.settings();
    const round = this.#round;
    const why = await refused(model, key);
    if (round === this.#round) this.#tryAgain(why); // neither hung up nor started again meanwhile
  }

  /** A call that had begun. */
  #over(code, at) {
    const why = closed(code, this.#errorCode);
    if (at.pop && why.retry) return this.#moveOn(at);
    if (code !== 1000) return this.#tryAgain(why);
    this.#client = null;
    this.#enter("idle", why.sentence);
  }

  /** To another PoP, with what was said so far. */
  #moveOn(at) {
    this.#leave();
    this.#broken = { from: at.name, said: this.#tools.among(this.conversation.said) };
    this.#unsaid = this.conversation.unsent;
    const gone = movedOn(at.name, "");
    if (performance.now() - this.#liveSince >= AT_ONCE_AFTER_MS) return this.#connect(gone);
    this.#tryAgain({ sentence: gone, retry: true });
  }

  #tryAgain({ sentence, retry }) {
    this.#client = null;
    if (!retry) return this.#enter("failed", sentence);
    const seconds = BACK_OFF_S[this.#tries++];
    if (seconds === undefined) return this.#enter("failed", `${sentence} Start again when it is back.`);
    this.#timer = setTimeout(() => this.#connect(), seconds * 1000);
    this.#enter("waiting", `${sentence} Trying again in ${seconds} s.`);
  }

  #enter(state, sentence) {
    if (state === "idle" || state === "failed") {
      this.#unsaid = [];
      this.#broken = null;
    }
    if (state !== "live") {
      this.#heartbeat?.stop();
      this.onTrip("");
    }
    this.state = state;
    this.onState(state, sentence);
  }
}
