// A line over a WebSocket: events, with the sound of both directions in them.

const UNSENT_BYTES = 256 * 1024; // about four seconds of our audio
const BYTES_A_MS = 48; // PCM16 at 24 kHz
const OPEN_S = 3; // for one of several PoPs to let us in

function toBase64(buffer) {
  return btoa(String.fromCharCode(...new Uint8Array(buffer)));
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0)).buffer;
}

export class WebSocketLine {
  #socket;
  #speaker;
  #timer = 0; // until it is open
  #messages = 0;
  #sent = { ms: 0, at: 0 };
  #sounding = ""; // the response whose sound came last

  /** `at`: where, as `Places` says it; its token must not be `unfitForWebSocket`. `voice`: "" for the agent's own.
   *  `onEvent(event)` gets every server event but those that carry sound: the first of a response is told as WebRTC tells
   *  it, by `output_audio_buffer.started`. `onClose({code})` gets the end. */
  constructor({ at, model, voice }, speaker, { onEvent, onClose }) {
    this.onEvent = onEvent;
    this.#speaker = speaker;
    const url = new URL(at.url, location);
    url.protocol = url.protocol.replace("http", "ws");
    url.searchParams.set("model", model);
    // Browsers cannot set headers on a WebSocket: by convention the key travels as a subprotocol.
    const protocols = ["realtime", ...(at.token ? [`openai-insecure-api-key.${at.token}`] : [])];
    this.#socket = new WebSocket(url, protocols);
    if (at.pop) this.#timer = setTimeout(() => this.#socket.close(), OPEN_S * 1000);
    this.#socket.onopen = () => {
      clearTimeout(this.#timer);
      if (voice) this.#speakAs(voice); // at once: the greeting waits for it a moment
    };
    this.#socket.onmessage = ({ data }) => this.#receive(JSON.parse(data));
    this.#socket.onclose = ({ code }) => {
      clearTimeout(this.#timer);
      onClose({ code });
    };
  }

  get open() {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  send(event) {
    if (this.open) this.#socket.send(JSON.stringify(event));
  }

  listenTo(microphone) {
    microphone.onBlock = (pcm) => {
      // On a network that stalls, what is new is dropped: late audio would only make the call late.
      if (this.#socket.bufferedAmount > UNSENT_BYTES) return;
      if (!this.open) return;
      this.send({ type: "input_audio_buffer.append", audio: toBase64(pcm) });
      this.#sent = { ms: this.#sent.ms + pcm.byteLength / BYTES_A_MS, at: performance.now() };
    };
  }

  /** {ms, at}: how much of the caller's sound had been sent, at a time of the page. */
  async sent() {
    return this.#sent;
  }

  /** Grows with whatever comes. */
  async heard() {
    return this.#messages;
  }

  /** Silence, at once; the server learns how much was heard, so that its history says what the caller knows. */
  silence() {
    for (const { itemId, ms } of this.#speaker.flush()) {
      this.send({ type: "conversation.item.truncate", item_id: itemId, content_index: 0, audio_end_ms: ms });
    }
  }

  close() {
    this.#speaker.flush();
    this.#socket.close(1000);
  }

  #speakAs(voice) {
    this.send({ type: "session.update", session: { type: "realtime", audio: { output: { voice } } } });
  }

  #receive(event) {
    this.#messages += 1;
    if (event.type === "response.output_audio.delta") {
      this.#speaker.play(event.item_id, fromBase64(event.delta));
      if (event.response_id === this.#sounding) return;
      this.#sounding = event.response_id;
      return this.onEvent({ type: "output_audio_buffer.started", response_id: event.response_id });
    }
    if (event.type === "input_audio_buffer.speech_started") this.silence();
    this.onEvent(event);
  }
}
