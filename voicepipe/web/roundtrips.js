// How far the PoPs are from here: all that a directory lists are asked for nothing, at once, a few times each.

import { bearer } from "./bearer.js";

const MOST = 64; // PoPs: a directory takes no more
const COUNTED = 3; // requests to each, after one that opens the connection
const LIMIT_MS = 800; // for all of it
const FAR_MS = 400; // at least, of one that has not answered: the directory must not take it for near
const LIST_MS = 2000;
const AGAIN_MS = 10 * 60 * 1000;

/** `region` of GET /v1/regions, as people read it. */
function nameOf({ pop, region }) {
  return region && region !== pop && region !== "local" ? `${pop} (${region})` : pop;
}

export class RoundTrips {
  #names = {}; // by PoP
  #key;
  #begun = -Infinity;
  #first; // the first measurement with this key

  /** Milliseconds by PoP. Of those that have not answered in time: how long they were waited for. */
  ms = {};

  /** What a PoP is called. */
  name(pop) {
    return this.#names[pop] ?? pop;
  }

  /** Measures if that was long ago. Waits for the first time only: later an old figure is better than a wait. */
  async measure(key) {
    const first = key !== this.#key;
    if (first || performance.now() - this.#begun > AGAIN_MS) {
      this.#key = key;
      this.#begun = performance.now();
      const measuring = this.#measure(key);
      if (first) this.#first = measuring;
    }
    await this.#first;
  }

  async #measure(key) {
    const regions = await list(key);
    const signal = AbortSignal.timeout(LIMIT_MS);
    const trips = await Promise.all(regions.slice(0, MOST).map(({ probe }) => shortest(probe, signal)));
    if (key !== this.#key) return; // another one was entered meanwhile
    this.#names = Object.fromEntries(regions.map((region) => [region.pop, nameOf(region)]));
    // Where nobody answers, something keeps the page from asking, and nothing is known.
    const known = trips.some(({ answered }) => answered);
    this.ms = known ? Object.fromEntries(trips.map(({ ms }, n) => [regions[n].pop, ms])) : {};
  }
}

/** Empty where the directory wants a key, or another one, or does not answer: a call will tell why. */
async function list(key) {
  try {
    const answer = await fetch("/v1/regions", { headers: bearer(key), signal: AbortSignal.timeout(LIST_MS) });
    return answer.ok ? (await answer.json()).regions : [];
  } catch {
    return [];
  }
}

/** {ms, answered}: of the shortest request that counts; where none has ended, of the one that opened the connection,
 *  or how long that was waited for. */
async function shortest(probe, signal) {
  const asked = performance.now();
  let opening = null;
  let ms = null;
  try {
    for (let n = 0; n <= COUNTED; n++) {
      const begun = performance.now();
      await fetch(probe, { cache: "no-store", mode: "no-cors", signal }); // whatever it answers, it is there
      const took = performance.now() - begun;
      if (n) ms = Math.min(ms ?? Infinity, took);
      else opening = took;
    }
  } catch {
    // It does not answer, or not in time: what was measured counts.
  }
  const answered = opening !== null;
  return { ms: ms ?? opening ?? Math.max(FAR_MS, performance.now() - asked), answered };
}
