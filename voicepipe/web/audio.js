// Sound out: gapless playback of PCM16 that knows what was heard, a remote track, and how loud either is.

export const RATE = 24000;
const CATCH_UP_S = 0.02; // silence put before sound that came too late, so that the next block is not late as well

/** 0..1 for a meter: -60 dBFS and less is nothing, -10 dBFS is full. */
export function loudness(rms) {
  return Math.min(1, Math.max(0, (20 * Math.log10(rms + 1e-6) + 60) / 50));
}

function rmsOf(analyser) {
  const samples = new Float32Array(analyser.fftSize);
  analyser.getFloatTimeDomainData(samples);
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
}

export class Speaker {
  #context = null;
  #analyser = null;
  #queue = []; // {itemId, start, seconds, source}: all of the items that may still be heard
  #end = 0; // context time at which what is queued ends

  /** Must be called from a click or a key press, or browsers keep the page silent. */
  unlock() {
    if (!this.#context) {
      this.#context = new AudioContext({ sampleRate: RATE, latencyHint: "interactive" });
      this.#analyser = new AnalyserNode(this.#context, { fftSize: 512 });
      this.#analyser.connect(this.#context.destination);
    }
    return this.#context.resume();
  }

  /** Queue `pcm` (bytes of PCM16 at 24 kHz) of an item behind what is queued. */
  play(itemId, pcm) {
    if (!this.#context) return;
    const samples = Float32Array.from(new Int16Array(pcm), (sample) => sample / 32768);
    if (!samples.length) return;
    const buffer = this.#context.createBuffer(1, samples.length, RATE);
    buffer.copyToChannel(samples, 0);
    const source = new AudioBufferSourceNode(this.#context, { buffer });
    source.connect(this.#analyser);
    const now = this.#context.currentTime;
    const start = this.#end < now ? now + CATCH_UP_S : this.#end;
    source.start(start);
    this.#end = start + buffer.duration;
    // An item's queue is kept whole, heard or not: a reply may pause and go on, and its ms count from its beginning.
    if (this.#queue.at(-1)?.itemId !== itemId && !this.sounding) this.#queue = [];
    this.#queue.push({ itemId, start, seconds: buffer.duration, source });
  }

  /** The listener can hear something now. */
  get sounding() {
    return this.#queue.length > 0 && this.#heardUntil < this.#queue.at(-1).start + this.#queue.at(-1).seconds;
  }

  get rms() {
    return this.sounding ? rmsOf(this.#analyser) : 0;
  }

  /** Be silent at once. Returns [{itemId, ms}]: how much was heard of each item that was cut short. */
  flush() {
    const until = this.#heardUntil;
    const items = new Map();
    for (const { itemId, start, seconds, source } of this.#queue) {
      const item = items.get(itemId) ?? { itemId, heard: 0, queued: 0 };
      item.heard += Math.min(seconds, Math.max(0, until - start));
      item.queued += seconds;
      items.set(itemId, item);
      source.stop();
    }
    this.#queue = [];
    this.#end = 0;
    return [...items.values()]
      .filter((item) => item.heard < item.queued)
      .map(({ itemId, heard }) => ({ itemId, ms: Math.floor(heard * 1000) }));
  }

  /** What is rendered is heard only after the device's own delay. */
  get #heardUntil() {
    return this.#context ? this.#context.currentTime - (this.#context.outputLatency || 0) : 0;
  }
}

/** Plays the track that a WebRTC connection brings. */
export class RemoteSpeaker {
  #audio = new Audio();
  #context = null;
  #analyser = null;
  #source = null;

  /** The agent speaks: known by events alone, the track itself never ends. */
  sounding = false;

  /** As `Speaker.unlock`. */
  unlock() {
    this.#context ??= new AudioContext();
    this.#analyser ??= new AnalyserNode(this.#context, { fftSize: 512 });
    return this.#context.resume();
  }

  play(track) {
    this.stop();
    const stream = new MediaStream([track]);
    this.#audio.srcObject = stream;
    this.#audio.play().catch(() => {}); // stopped before it began
    if (!this.#context) return;
    // Beside the element: without one some browsers measure silence.
    this.#source = this.#context.createMediaStreamSource(stream);
    this.#source.connect(this.#analyser);
  }

  stop() {
    this.#source?.disconnect();
    this.#source = this.#audio.srcObject = null;
    this.sounding = false;
  }

  get rms() {
    return this.sounding && this.#source ? rmsOf(this.#analyser) : 0;
  }
}
