// Whether the PoP that has the call is still there. Whatever comes by the call's own line says so; where nothing has come
// for half a second, the PoP is asked, at most twice a second: pages behind one address share what it may ask.

const LOOK_MS = 250; // so often it is looked whether something has come; the PoP is not asked for that
const SILENT_MS = 500; // without a sign of life: then it is asked
const APART_MS = 500; // two requests
const WAIT_MS = 500; // for an answer
const DEAD_MS = 900; // at least, without a sign of life
const QUEUE_MS = 50; // after a page that was busy has time again, what came meanwhile is read within this
const FIRST = 2; // requests, whatever comes: whether it answers at all, and how far it is
const WAITING = 4; // requests at a time: something in between may hold them all
const SHOWN = 8; // requests; the shortest of the last is told

export class Heartbeat {
  #probe;
  #stop = new AbortController();
  #timer;
  #checks = []; // timers
  #heard = 0; // of the line, as last seen
  #alive = performance.now(); // when there was a sign of life
  #answers = false; // it has answered once
  #asked = -Infinity;
  #requests = 0;
  #pending = 0;
  #waiting = null; // since when a request waits, of those after the last sign of life
  #trips = [];

  /** `heard()`, async: a number that grows with whatever comes by the line. `onTrip(ms)`: how far the PoP is.
   *  `onDead()`: once. A PoP that never answers is not missed: something in between may not let requests through. */
  constructor(probe, { heard, onTrip, onDead }) {
    this.#probe = probe;
    this.heard = heard;
    this.onTrip = onTrip;
    this.onDead = onDead;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    this.#look();
  }

  stop() {
    clearInterval(this.#timer);
    this.#checks.forEach(clearTimeout);
    this.#stop.abort();
  }

  async #look() {
    await this.#judge();
    const now = performance.now();
    if (this.#stop.signal.aborted || now - this.#asked < APART_MS || this.#pending >= WAITING) return;
    if (this.#requests < FIRST || now - this.#alive >= SILENT_MS) this.#ask(now);
  }

  async #ask(begun) {
    this.#asked = begun;
    this.#waiting ??= begun;
    this.#requests += 1;
    this.#pending += 1;
    this.#after(WAIT_MS);
    try {
      await fetch(this.#probe, { cache: "no-store", mode: "no-cors", signal: this.#stop.signal });
    } catch {
      return; // it is not there, or we were stopped
    } finally {
      this.#pending -= 1;
    }
    if (this.#stop.signal.aborted) return;
    this.#trips = [...this.#trips, performance.now() - begun].slice(-SHOWN);
    this.#answers = true;
    this.#lives();
    this.onTrip(Math.min(...this.#trips));
  }

  #lives() {
    this.#alive = performance.now();
    this.#waiting = null;
    this.#checks.splice(0).forEach(clearTimeout);
    this.#after(SILENT_MS);
  }

  /** Look again then, not only when the next turn comes. */
  #after(ms) {
    this.#checks.push(setTimeout(() => this.#look(), ms + 1));
  }

  /** A request must have been waiting, too: hidden pages are given time only once a second. */
  get #silent() {
    const now = performance.now();
    const waits = this.#waiting !== null && now - this.#waiting >= WAIT_MS;
    return this.#answers && waits && now - this.#alive >= DEAD_MS;
  }

  async #judge() {
    const heard = await this.heard();
    if (this.#stop.signal.aborted) return;
    if (heard !== this.#heard) this.#lives();
    this.#heard = heard;
    if (!this.#silent) return;
    await new Promise((resolve) => setTimeout(resolve, QUEUE_MS));
    if (!this.#silent || this.#stop.signal.aborted) return;
    this.stop();
    this.onDead();
  }
}
