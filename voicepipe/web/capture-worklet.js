// The microphone's samples on the audio thread: resampled to 24 kHz and cut into 20 ms blocks of PCM16.

const RATE = 24000;
const BLOCK = RATE / 50;
const ZERO_CROSSINGS = 12; // each side: 0.5 ms of delay at 24 kHz, and aliases out of the speech band
const PHASES = 128; // positions between two input samples for which the filter is tabulated
const PASS = 0.92; // of the Nyquist frequency; the rest is the filter's slope

/** Windowed-sinc resampling of a stream, from any rate. The browser's own would need a context at 24 kHz, which
 *  Firefox refuses to feed from a microphone at another rate. */
class Resampler {
  constructor(from, to) {
    this.step = from / to;
    this.half = Math.ceil(ZERO_CROSSINGS * Math.max(1, this.step));
    this.filters = Array.from({ length: PHASES + 1 }, (_, phase) => this.filter(phase / PHASES));
    this.samples = new Float32Array(2 * this.half);
    this.at = this.half; // of the next output, in samples from the start of `samples`
  }

  /** The weights of the 2 * half samples around a point `fraction` of the way between the middle two. */
  filter(fraction) {
    const cutoff = PASS * Math.min(1, 1 / this.step);
    const weights = Float64Array.from({ length: 2 * this.half }, (_, tap) => {
      const distance = tap - this.half + 1 - fraction;
      const window = Math.max(0, Math.cos((Math.PI * distance) / (2 * this.half))) ** 2;
      const x = Math.PI * cutoff * distance;
      return (x === 0 ? 1 : Math.sin(x) / x) * window;
    });
    const sum = weights.reduce((a, b) => a + b);
    return weights.map((weight) => weight / sum);
  }

  /** Calls `out` with each output sample that `input` completes. */
  push(input, out) {
    const kept = 2 * this.half;
    const samples = new Float32Array(kept + input.length);
    samples.set(this.samples.subarray(this.samples.length - kept));
    samples.set(input, kept);
    this.samples = samples;
    while (Math.floor(this.at) + this.half < samples.length) {
      const before = Math.floor(this.at);
      const weights = this.filters[Math.round((this.at - before) * PHASES)];
      let sum = 0;
      for (let tap = 0, i = before - this.half + 1; tap < weights.length; tap++, i++) sum += weights[tap] * samples[i];
      out(sum);
      this.at += this.step;
    }
    this.at -= input.length;
  }
}

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = new Resampler(sampleRate, RATE);
    this.take = (sample) => this.add(sample);
    this.begin();
  }

  begin() {
    this.block = new Int16Array(BLOCK);
    this.filled = 0;
    this.power = 0;
  }

  add(sample) {
    const clipped = Math.max(-1, Math.min(1, sample));
    this.power += clipped * clipped;
    this.block[this.filled++] = Math.round(clipped * 32767);
    if (this.filled < BLOCK) return;
    const pcm = this.block.buffer;
    this.port.postMessage({ pcm, rms: Math.sqrt(this.power / BLOCK) }, [pcm]);
    this.begin();
  }

  process([input]) {
    // Without a channel the microphone is gone for the moment: media time stops with it, as it does on a phone.
    if (input.length) this.resampler.push(input[0], this.take);
    return true;
  }
}

registerProcessor("capture", Capture);
