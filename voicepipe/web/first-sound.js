// A turn as it is known by the first sound of its answer: what the server told as the answer was begun, which is mostly
// all that its engines did, and when the sound came, by this page. All of the server's times come with the answer's end.

import { recordOf } from "./turn.js";

const LONGEST_MS = 20000; // what seems longer was measured wrongly

/** The record of such a turn. Times are the page's, in ms. `sent`: {ms, at}, how much of the caller's sound had been
 *  sent at one of them; `end`: where in it the voice ended. `confirmed`, `heard`: the turn's end, and its answer's first
 *  sound. `told`: the server's record so far, if it has one. null: it was not measured. */
export function recordOfPage({ sent, end, confirmed, heard, told }) {
  const ended = (sent?.at ?? NaN) - (sent?.ms ?? NaN) + end;
  const audible = heard - ended;
  const commit = Math.min(told?.at_commit ?? confirmed - ended, audible);
  if (!(commit >= 0 && audible <= LONGEST_MS)) return null;
  return { ...told, at_commit: commit, at_audible: audible, turn_latency: audible, by_page: true, open: true };
}

export class FirstSound {
  #turn = null; // that ended last, until its answer is heard
  #over = ""; // the response that was done last

  /** `sent()`: a promise of {ms, at} as above. `onHeard(responseId, record)`: an answer began to sound. */
  constructor(sent, onHeard) {
    this.sent = sent;
    this.onHeard = onHeard;
  }

  /** Any server event. */
  hear({ type, audio_end_ms, response, response_id }) {
    const now = performance.now();
    if (type === "input_audio_buffer.speech_started") {
      this.#turn = null;
      this.#sent(); // the oftener it is asked, the better the line knows
    }
    if (type === "input_audio_buffer.speech_stopped") {
      this.#turn = { sent: this.#sent(), end: audio_end_ms, confirmed: now, answer: "", told: null };
    }
    if (type === "response.created" && this.#turn && !this.#turn.answer) {
      this.#turn.answer = response.id;
      this.#turn.told = recordOf(response);
      if (this.#turn.told && !Number.isFinite(this.#turn.told.at_commit)) this.#turn = null; // no turn asked for it
    }
    if (type === "output_audio_buffer.started" && this.#turn?.answer === response_id) this.#heard(this.#turn, now);
    if (type === "response.done") this.#over = response.id;
  }

  async #sent() {
    try {
      return await this.sent();
    } catch {
      return null; // the line is gone
    }
  }

  async #heard(turn, now) {
    this.#turn = null;
    const record = recordOfPage({ ...turn, sent: await turn.sent, heard: now });
    if (record && this.#over !== turn.answer) this.onHeard(turn.answer, record);
  }
}
