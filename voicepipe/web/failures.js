// Everything that can go wrong, each in a plain sentence that says what to do.

import { bearer } from "./bearer.js";

const MICROPHONE = {
  NotAllowedError:
    "The microphone is blocked for this page. Allow it in your browser's address bar, then press the button again. " +
    "You can type in the meantime.",
  NotFoundError: "No microphone was found. Plug one in and press the button again, or type your message.",
  NotReadableError: "Another program holds the microphone. Close it and press the button again, or type your message.",
};

export function microphoneFailure(error) {
  return MICROPHONE[error.name] ?? `The microphone did not start (${error.message || error.name}). You can type instead.`;
}

/** Why there can be no microphone here at all, or "". */
export function insecureOrigin(location) {
  if (navigator.mediaDevices?.getUserMedia) return "";
  if (window.isSecureContext) return "This browser gives pages no microphone. You can type instead.";
  return (
    `Browsers give the microphone only to https pages and to localhost, and this is ${location.origin}. ` +
    "Serve it with a certificate, or open it as localhost on the machine it runs on. You can type in the meantime."
  );
}

const CLOSED = {
  1000: { sentence: "The call has ended.", retry: false },
  1001: { sentence: "The server ended the call. Start a new one when you like.", retry: false },
  1011: { sentence: "The server failed on this call; its log says why.", retry: true },
  1012: { sentence: "The server is restarting.", retry: true },
};
const BY_CODE = {
  session_expired: { sentence: "The call reached its longest allowed time. Start a new one.", retry: false },
  session_idle: { sentence: "Nothing was heard for a long time, so the call was ended. Start a new one.", retry: false },
};

/** What the end of a call that had begun means: {sentence, retry}. `errorCode`: of the last error event, if any. */
export function closed(code, errorCode) {
  return BY_CODE[errorCode] ?? CLOSED[code] ?? { sentence: "The connection to the server broke.", retry: true };
}

const TOKEN = /^[\w!#$%&'*+.^`|~-]*$/;

/** Why browsers cannot use `key` on a WebSocket, on which it travels as the name of a subprotocol; "" if they can. */
export function unfitForWebSocket(key) {
  if (TOKEN.test(key)) return "";
  return (
    "Browsers cannot send this key over a WebSocket: there it may hold letters, digits and !#$%&'*+-.^_`|~ only. " +
    "Choose WebRTC, or enter another key, then start again."
  );
}

const REFUSED = {
  401: "This server wants a key. Enter it at the top right, then start again.",
  403: "This server takes calls only from pages of its own machine. Open it as localhost, or allow this page's origin.",
  404: "Your key has no agent of this name. Choose another at the top right, then start again.",
};

const WRONG_KEY = "This server does not know your key. Correct it at the top right, then start again.";
const SILENT = { sentence: "The server does not answer. Is it running?", retry: true };
export const PAUSED = { sentence: "The server did not answer within 5 seconds.", retry: true };
const PATIENCE_MS = 5000;
const NO_CALLS = { sentence: "The server takes no calls at the moment.", retry: true };

/** Browsers do not say why a WebSocket was refused, so ask the same server over HTTP: {sentence, retry}. */
export async function refused(model, key) {
  let asked, ready;
  try {
    const headers = { "Content-Type": "application/json", ...bearer(key) };
    const body = JSON.stringify({ session: { type: "realtime", model } });
    const signal = AbortSignal.timeout(PATIENCE_MS);
    asked = await fetch("/v1/realtime/client_secrets", { method: "POST", headers, body, signal });
    ready = await fetch("/readyz", { signal });
  } catch (error) {
    return error.name === "TimeoutError" ? PAUSED : SILENT;
  }
  if (judged(asked.status, key)) return judged(asked.status, key);
  if (ready.status === 503) return NO_CALLS;
  return { sentence: "The server refused the call: all its places are taken.", retry: true };
}

function judged(status, key) {
  if (status === 401 && key) return { sentence: WRONG_KEY, retry: false };
  return status in REFUSED ? { sentence: REFUSED[status], retry: false } : null;
}

const FULL = [429, 503];

/** Whether the next PoP is tried after this one's answer; 0 or undefined: it gave none. `another`: there is one that the
 *  directory has named as well. Where there is none, what is wrong with this one is told instead. */
export function triesNext(status, another) {
  return !status || FULL.includes(status) || (another && (status === 401 || status >= 500));
}

/** What it means that a directory names no PoP: {sentence, retry}. `status`: of its answer; 0: there was none. */
export function notPlaced(status, key) {
  if (!status) return SILENT;
  return judged(status, key) ?? NO_CALLS;
}

/** The PoPs' names: the one that had the call, and the one that has it now; "" while it is looked for. */
export function movedOn(from, to) {
  if (!to) return `${from} stopped answering.`;
  if (to === from) return `${from} did not answer for a while; the call goes on there.`;
  return `${from} stopped answering; the call goes on at ${to}.`;
}

// Answers to what was right when it was sent: the reply, or its item, was gone by the time it arrived.
const HARMLESS = new Set([
  "response_cancel_not_active",
  "item_truncate_invalid_item_id",
  "item_retrieve_invalid_item_id",
]);

/** The sentence for an `error` event, or "" if nobody needs to know. */
export function errorSentence(error) {
  if (HARMLESS.has(error.code) || error.param === "audio_end_ms") return "";
  return `The server reports: ${error.message}`;
}
