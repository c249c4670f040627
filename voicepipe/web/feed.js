// The server's figures, again and again: goes on when the server comes back, and asks for a key when it wants one.

import { bearer } from "./bearer.js";

const PATIENCE_MS = 5000;

export const LOST = "The server does not answer; trying again.";
const REFUSED = "This server shows its figures to pages of its own machine alone. Open it as localhost.";

/** What an answer means: {state, sentence}; state "ok", "locked" (a key is wanted), "lost" or "refused". */
export function judged(status, hasKey, message) {
  if (status === 200) return { state: "ok", sentence: "" };
  if (status === 401) return { state: "locked", sentence: hasKey ? "This server does not know that key." : "" };
  if (status === 403) return { state: "refused", sentence: REFUSED };
  return { state: "lost", sentence: message || LOST };
}

export class Feed {
  #timer = 0;
  #round = 0; // answers to earlier questions are not shown over later ones

  /** `asks()` gives {path, key}. `onView(view)`: fresh figures. `onState(state, sentence)`: as `judged`. */
  constructor({ asks, everyMs, onView, onState }) {
    this.asks = asks;
    this.everyMs = everyMs;
    this.onView = onView;
    this.onState = onState;
  }

  /** Ask now, and from then on every `everyMs`. */
  async refresh() {
    clearTimeout(this.#timer);
    const round = ++this.#round;
    const { path, key } = this.asks();
    const { status, body } = document.hidden ? {} : await ask(path, key);
    if (round !== this.#round) return;
    if (status !== undefined) {
      const { state, sentence } = judged(status, Boolean(key), body?.error?.message);
      this.onState(state, sentence);
      if (state === "ok") this.onView(body);
      if (state === "locked") return; // until there is another key
    }
    this.#timer = setTimeout(() => this.refresh(), this.everyMs);
  }
}

/** {status, body}; status 0: no answer. `sent`: what is posted, as JSON; without it the request is a GET. */
export async function ask(path, key, sent) {
  try {
    const posted = sent && { method: "POST", body: JSON.stringify(sent) };
    const answer = await fetch(path, { ...posted, headers: bearer(key), signal: AbortSignal.timeout(PATIENCE_MS) });
    return { status: answer.status, body: await answer.json() };
  } catch {
    return { status: 0, body: null };
  }
}
