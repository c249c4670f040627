// Sound in: the microphone, from the question for permission until it is given back.

export class Microphone {
  #opening = null; // a promise of `#source`, from the moment at which it is asked for
  #source = null; // {stream, context}

  /** `onBlock(pcm)` may be set: it gets 20 ms of PCM16 at 24 kHz at a time, as an ArrayBuffer. */
  onBlock = null;
  rms = 0;

  /** `onLost()`: the device was unplugged or taken away. */
  constructor(onLost) {
    this.onLost = onLost;
  }

  get open() {
    return this.#source !== null;
  }

  /** The MediaStreamTrack, or null. */
  get track() {
    return this.#source?.stream.getAudioTracks()[0] ?? null;
  }

  get muted() {
    return this.open && !this.track.enabled;
  }

  /** Muted, it goes on sending silence: the server's clock is the audio it gets. */
  set muted(muted) {
    if (this.open) this.track.enabled = !muted;
  }

  /** Asks for permission, once for all who call it meanwhile. True: it is open; false: `stop` was called before that.
   *  Rejects with what getUserMedia says. */
  async start() {
    const opening = (this.#opening ??= this.#capture());
    try {
      const source = await opening;
      if (this.#opening !== opening) return false;
      this.#source = source;
      return true;
    } catch (error) {
      if (this.#opening !== opening) return false;
      this.#opening = null;
      throw error;
    }
  }

  /** Also what is still being opened: it is given back once it is there. */
  stop() {
    this.#opening?.then(release, () => {});
    this.#opening = this.#source = null;
    this.rms = 0;
  }

  async #capture() {
    const wanted = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };
    const stream = await navigator.mediaDevices.getUserMedia({ audio: wanted });
    const context = new AudioContext({ latencyHint: "interactive" });
    try {
      await context.audioWorklet.addModule(new URL("capture-worklet.js", import.meta.url));
    } catch (error) {
      release({ stream, context });
      throw error;
    }
    const capture = new AudioWorkletNode(context, "capture", { outputChannelCount: [1] });
    capture.port.onmessage = ({ data }) => {
      if (this.#source?.stream !== stream) return;
      this.rms = data.rms;
      this.onBlock?.(data.pcm);
    };
    context.createMediaStreamSource(stream).connect(capture);
    capture.connect(context.destination); // it stays silent; unconnected nodes are not run by every browser
    stream.getAudioTracks()[0].addEventListener("ended", () => {
      this.stop();
      this.onLost();
    });
    await context.resume();
    return { stream, context };
  }
}

function release({ stream, context }) {
  stream.getTracks().forEach((track) => track.stop());
  context.close();
}
