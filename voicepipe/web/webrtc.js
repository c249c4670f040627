// A line over WebRTC: the sound in tracks, the events in a data channel, connected by one HTTP request.

import { bearer } from "./bearer.js";
import { iceServers } from "./ice.js";

const CONNECT_S = 8;
const GATHER_S = 1; // of our own addresses: the server finds the others by the packets that come from them
const LOST_S = 5; // most gaps that are shorter close by themselves
const PACKET_MS = 20; // of sound, as browsers pack it
const TELL_S = 1; // for the server to hear that we hang up
const ANSWER_S = 3; // for one of several PoPs to answer the offer
// Data channels have no closing codes: what a WebSocket would be closed with, by the error that is told last.
const CLOSES = { session_expired: 1001, session_idle: 1001, server_error: 1011, server_shutdown: 1012 };

const INSTEAD = "so the call goes over WebSocket.";
const NO_BROWSER = `This browser has no WebRTC, ${INSTEAD}`;
const NO_SERVER = `This server takes no WebRTC calls from this browser, ${INSTEAD}`;
const NO_WAY = `WebRTC does not get through, as a firewall may hold its packets back, ${INSTEAD}`;

export class WebRtcLine {
  #connection = null;
  #channel = null;
  #sender = null;
  #receiver = null;
  #speaker;
  #at;
  #key;
  #call = ""; // its own address
  #timer = 0; // until it is connected, or connected again
  #begun = false; // the channel was open once
  #code; // of CLOSES, if the last event was such an error
  #over = false;
  #sendsSince = Infinity; // the page's time at the beginning of the caller's sound, as far as is known

  /** `at`: where, as `Places` says it. `key` opens the page's own server. `voice`: "" for the agent's own.
   *  `onEvent(event)` gets every server event, `onClose({code, instead, status})` the end. `code` is what a WebSocket
   *  would have been closed with; `instead` says why another kind of line should be tried; `status` is the answer of a
   *  server that refuses the call. */
  constructor({ at, model, key, voice }, speaker, { onEvent, onClose }) {
    this.onEvent = onEvent;
    this.onClose = onClose;
    this.#speaker = speaker;
    this.#at = at;
    this.#key = key;
    this.#timer = setTimeout(() => this.#lost(), CONNECT_S * 1000);
    this.#dial(model, voice).catch((error) => this.#drop(whyNot(error)));
  }

  get open() {
    return this.#channel?.readyState === "open";
  }

  send(event) {
    if (this.open) this.#channel.send(JSON.stringify(event));
  }

  listenTo(microphone) {
    this.#sender.replaceTrack(microphone.track);
  }

  /** Grows with whatever comes. */
  async heard() {
    const stats = (await this.#receiver?.getStats()) ?? new Map();
    return [...stats.values()].find(({ type }) => type === "inbound-rtp")?.packetsReceived ?? 0;
  }

  /** {ms, at}: how much of the caller's sound had been sent, at a time of the page. */
  async sent() {
    const stats = [...(await this.#sender.getStats()).values()].find(({ type }) => type === "outbound-rtp");
    const at = performance.now();
    // Where a busy machine sent nothing for a while, the server heard silence.
    if (stats) this.#sendsSince = Math.min(this.#sendsSince, at - PACKET_MS * stats.packetsSent);
    return { ms: at - this.#sendsSince, at };
  }

  /** Silence. The server paces the sound, so it knows how much was heard. */
  silence() {
    if (this.#speaker.sounding) this.send({ type: "output_audio_buffer.clear" });
  }

  close() {
    this.onClose = () => {};
    this.#drop({});
  }

  async #dial(model, voice) {
    const servers = await iceServers(this.#at);
    if (this.#over) return;
    if (!globalThis.RTCPeerConnection) return this.#end({ instead: NO_BROWSER });
    const connection = (this.#connection = new RTCPeerConnection({ iceServers: servers }));
    // Without a track for now: whoever only types has no microphone.
    const { sender, receiver } = connection.addTransceiver("audio", { direction: "sendrecv" });
    this.#sender = sender;
    this.#receiver = receiver;
    this.#channel = connection.createDataChannel("oai-events");
    this.#channel.onopen = () => this.#opened();
    this.#channel.onmessage = ({ data }) => this.#receive(JSON.parse(data));
    this.#channel.onclose = () => this.#hungUp();
    connection.ontrack = ({ track }) => this.#over || this.#speaker.play(track);
    connection.onconnectionstatechange = () => this.#changed(connection.connectionState);
    await connection.setLocalDescription();
    await gathered(connection);
    if (this.#over) return;
    const session = { type: "realtime", model, ...(voice && { audio: { output: { voice } } }) };
    const body = new FormData();
    body.append("sdp", connection.localDescription.sdp);
    body.append("session", JSON.stringify(session)); // with the offer: what comes later may come after the greeting
    const { pop, url, token } = this.#at;
    const signal = pop ? AbortSignal.timeout(ANSWER_S * 1000) : undefined;
    const answer = await fetch(url, { method: "POST", headers: bearer(token), body, signal });
    this.#call = answer.headers.get("Location") ?? "";
    if (this.#over) return this.#delete();
    // A PoP's 5xx may be a proxy's, in its own words: another PoP may take the call as it is.
    const refused = refusesCalls(answer) || (pop && answer.status >= 500);
    if (!answer.ok) return this.#end(refused ? { status: answer.status } : { instead: NO_SERVER });
    await connection.setRemoteDescription({ type: "answer", sdp: await answer.text() });
  }

  #receive(event) {
    if (this.#over) return;
    this.#code = event.type === "error" ? CLOSES[event.error.code] : undefined;
    if (event.type === "output_audio_buffer.started") this.#speaker.sounding = true;
    if (/^output_audio_buffer\.(stopped|cleared)$/.test(event.type)) this.#speaker.sounding = false;
    this.onEvent(event);
  }

  #opened() {
    this.#begun = true;
    clearTimeout(this.#timer);
  }

  #changed(state) {
    if (!this.#begun) return state === "failed" && this.#lost();
    if (!this.open) return; // `#hungUp` finds out why
    clearTimeout(this.#timer);
    if (state === "failed") this.#lost();
    if (state === "disconnected") this.#timer = setTimeout(() => this.#lost(), LOST_S * 1000);
  }

  #lost() {
    this.#drop(this.#begun ? { code: this.#code ?? 1006 } : { instead: NO_WAY });
  }

  /** The channel was closed. If the server has not said why: one that still takes calls did it on purpose. */
  async #hungUp() {
    if (this.#over) return;
    if (!this.#begun) return this.#lost();
    if (this.#code) return this.#end({ code: this.#code });
    const ready = await fetch(this.#at.probe || "/readyz").then((answer) => answer.ok, () => false);
    this.#end({ code: ready ? 1000 : 1012 });
  }

  /** Ended from here: the server is told so before the connection goes, with which it would forget the call. */
  #drop(end) {
    if (!this.#over) this.#end(end, this.#delete());
  }

  /** By the page's own server, which passes it on to the PoP. */
  async #delete() {
    if (!this.#call) return;
    const signal = AbortSignal.timeout(TELL_S * 1000);
    const headers = bearer(this.#key);
    await fetch(this.#call, { method: "DELETE", headers, keepalive: true, signal }).catch(() => {});
  }

  #end(end, told = Promise.resolve()) {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#sender?.replaceTrack(null);
    told.then(() => this.#connection?.close());
    this.#speaker.stop();
    this.onClose(end);
  }
}

/** What WebRTC fails with is a DOMException; otherwise the server does not answer, in time or in this language. */
function whyNot(error) {
  return error instanceof DOMException && error.name !== "TimeoutError" ? { instead: NO_SERVER } : {};
}

/** There is nobody to send later candidates to: wait for the first ones. */
function gathered(connection) {
  return new Promise((resolve) => {
    const check = () => connection.iceGatheringState === "complete" && resolve();
    connection.addEventListener("icegatheringstatechange", check);
    setTimeout(resolve, GATHER_S * 1000);
    check();
  });
}

/** The server would refuse us over any line, rather than WebRTC or what we offered of it. */
function refusesCalls(answer) {
  return answer.status !== 400 && answer.headers.get("Content-Type")?.startsWith("application/json");
}
