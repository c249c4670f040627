// Where the next call goes. A directory names PoPs, the best first, with a token for each; a PoP takes calls itself.

import { bearer } from "./bearer.js";
import { notPlaced, PAUSED } from "./failures.js";
import { RoundTrips } from "./roundtrips.js";

const OWN = { websocket: "/v1/realtime", webrtc: "/v1/realtime/calls" };
const MARGIN_S = 15; // a token that expires sooner may be too old by the time it gets there
const PATIENCE_MS = 5000; // for the page's own server
const CHOSEN = "voicepipe.place"; // in sessionStorage: where the user wants to be taken for, {latitude, longitude}

/** Where a PoP is asked whether it is there, by the address at which it takes calls. */
export function probeOf(url) {
  return url.replace(/^ws/, "http").replace(/\/v1\/realtime(\/calls)?$/, "/rtt");
}

/** Body of POST /v1/calls. `chosen`: a place, or null; what was measured says nothing of it. */
export function asked({ line, model, tried, rtt, chosen }) {
  const about = chosen ? { place: chosen } : { rtt_ms: rtt };
  return { kind: line, ...about, ...(model && { require: { agent: model } }), tried };
}

export class Places {
  #trips = new RoundTrips();
  #isDirectory; // a promise, once that was asked
  #candidates = []; // not tried yet
  #until = 0; // when their tokens are too old
  #tried = []; // PoPs

  /** How far the PoPs are, if there are any. */
  async measure(key) {
    if (await this.#directory()) await this.#trips.measure(key);
  }

  /** Whether there is another PoP to try without asking the directory again. */
  get hasAnother() {
    return this.#candidates.length > 0 && performance.now() <= this.#until;
  }

  /** A call that has nothing to do with the one before. */
  begin() {
    this.#candidates = [];
    this.#tried = [];
  }

  /** The call is at this PoP: if it ends there, all others may be tried. */
  took(at) {
    this.#tried = [at.pop];
  }

  /** Where to call next: {at: {pop, name, url, token, probe}}, or why nowhere: {problem: {sentence, retry}}.
   *  `pop` and `probe` are "" where no directory has placed the call. */
  async next({ line, model, key }) {
    try {
      if (!(await this.#directory())) return { at: { pop: "", name: "", url: OWN[line], token: key, probe: "" } };
      if (!this.#candidates.length || performance.now() > this.#until) {
        const status = await this.#ask(line, model, key);
        if (status !== 200) return { problem: notPlaced(status, key) };
      }
    } catch (error) {
      return { problem: error.name === "TimeoutError" ? PAUSED : notPlaced(0, key) };
    }
    const { pop, url, token } = this.#candidates.shift();
    this.#tried.push(pop);
    return { at: { pop, name: this.#trips.name(pop), url, token, probe: probeOf(url) } };
  }

  /** Fills `#candidates`: the HTTP status. */
  async #ask(line, model, key) {
    await this.#trips.measure(key);
    const chosen = JSON.parse(sessionStorage.getItem(CHOSEN));
    const body = JSON.stringify(asked({ line, model, tried: this.#tried, rtt: this.#trips.ms, chosen }));
    const headers = { "Content-Type": "application/json", ...bearer(key) };
    const answer = await fetch("/v1/calls", { method: "POST", headers, body, signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!answer.ok) return answer.status;
    const { candidates, expires_in } = await answer.json();
    this.#candidates = candidates;
    this.#until = performance.now() + (expires_in - MARGIN_S) * 1000;
    return answer.status;
  }

  /** Whether the page's server is one: its health then counts PoPs. To ask a PoP for a place would be an error in the
   *  browser's console and in the PoP's log. Raises TypeError or a TimeoutError: it does not answer. */
  #directory() {
    const forget = () => (this.#isDirectory = undefined);
    const signal = AbortSignal.timeout(PATIENCE_MS);
    this.#isDirectory ??= fetch("/healthz", { signal }).then(async (answer) => "pops" in (await answer.json()));
    this.#isDirectory.catch(forget);
    return this.#isDirectory;
  }
}
