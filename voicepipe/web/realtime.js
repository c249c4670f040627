// One Realtime WebSocket, as OpenAI's GA convention has it: events out, events in. Knows no page and no sound device.

const UNSENT_BYTES = 256 * 1024; // about four seconds of our audio
const RETRY_REPLY_MS = 250; // the server's reply may sound a little longer than its `response.done`

/** "ws(s)://HOST/v1/realtime?model=...", for the page at `location`. */
export function realtimeUrl(location, model) {
  const url = new URL("/v1/realtime", location);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.searchParams.set("model", model);
  return url;
}

export function toBase64(buffer) {
  return btoa(String.fromCharCode(...new Uint8Array(buffer)));
}

export function fromBase64(text) {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0)).buffer;
}

export class RealtimeClient {
  #socket;
  #ready = false;
  #responseId = null; // of the response in progress
  #replyWanted = false; // a reply was asked for while another was in progress

  /** `onEvent(event)` gets every server event, `onClose({code, reason, ready})` the end; `ready`: the call had begun. */
  constructor(url, key, { onEvent, onClose }) {
    this.onEvent = onEvent;
    // Browsers cannot set headers on a WebSocket: by convention the key travels as a subprotocol.
    const protocols = ["realtime", ...(key ? [`openai-insecure-api-key.${key}`] : [])];
    this.#socket = new WebSocket(url, protocols);
    this.#socket.onmessage = ({ data }) => this.#receive(JSON.parse(data));
    this.#socket.onclose = ({ code, reason }) => onClose({ code, reason, ready: this.#ready });
  }

  get ready() {
    return this.#ready && this.#socket.readyState === WebSocket.OPEN;
  }

  /** 20 ms of PCM16. On a network that stalls, what is new is dropped: late audio would only make the call late. */
  append(pcm) {
    if (this.ready && this.#socket.bufferedAmount < UNSENT_BYTES) {
      this.#send({ type: "input_audio_buffer.append", audio: toBase64(pcm) });
    }
  }

  /** A typed message, and the reply to it. */
  say(text) {
    const content = [{ type: "input_text", text }];
    this.#send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
    this.#reply();
  }

  /** The caller heard only `ms` of this item. */
  truncate(itemId, ms) {
    this.#send({ type: "conversation.item.truncate", item_id: itemId, content_index: 0, audio_end_ms: ms });
    // The answer to `truncate` has no text: ask what of it the conversation keeps.
    this.#send({ type: "conversation.item.retrieve", item_id: itemId });
  }

  close() {
    this.#socket.close(1000);
  }

  #send(event) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(event));
  }

  #reply() {
    if (this.#responseId) {
      this.#replyWanted = true;
      this.#send({ type: "response.cancel" });
    } else {
      this.#send({ type: "response.create" });
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
      case "error":
        if (event.error.code === "conversation_already_has_active_response") {
          setTimeout(() => this.#reply(), RETRY_REPLY_MS);
          return;
        }
    }
    this.onEvent(event);
  }
}
