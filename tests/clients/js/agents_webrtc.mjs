// A call by RealtimeSession of @openai/agents-realtime over its OpenAIRealtimeWebRTC, in a browser.

import * as sdk from "./node_modules/@openai/agents-realtime/dist/bundle/openai-realtime-agents.mjs";
import { attend } from "./caller.mjs";

const RATE = 24000;
const AUDIBLE = 0.005;

/** Hold the call; `questions` are s16le at 24 kHz in base64. Returns the call's id. */
window.hold = async ({ url, key, questions }) => {
  const context = new AudioContext({ sampleRate: RATE });
  const microphone = context.createMediaStreamDestination();
  const silence = new ConstantSourceNode(context, { offset: 0 });
  silence.connect(microphone); // without any source a track sends nothing, as no microphone does
  silence.start();
  const ask = () => play(questions.shift(), context, microphone);
  const audioElement = new Audio();
  const transport = new sdk.OpenAIRealtimeWebRTC({
    baseUrl: `${url}/v1/realtime/calls`, mediaStream: microphone.stream, audioElement,
  });
  const { session, sound, satisfied } = attend(sdk, transport, ask, window.tell);
  await Promise.race([session.connect({ apiKey: key }), satisfied]);
  const listening = listen(context, audioElement.srcObject, sound);
  await satisfied;
  clearInterval(listening);
  const callId = transport.callId;
  session.close();
  return callId;
};

function play(base64, context, microphone) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const samples = Float32Array.from(new Int16Array(bytes.buffer), (sample) => sample / 32768);
  const source = context.createBufferSource();
  source.buffer = context.createBuffer(1, samples.length, RATE);
  source.buffer.copyToChannel(samples, 0);
  source.connect(microphone);
  source.start();
}

/** Call `sound(ms)` while there is something to hear in `stream`. */
function listen(context, stream, sound) {
  const analyser = context.createAnalyser();
  context.createMediaStreamSource(stream).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  let last = performance.now();
  return setInterval(() => {
    const now = performance.now();
    analyser.getFloatTimeDomainData(samples);
    if (samples.some((sample) => Math.abs(sample) > AUDIBLE)) sound(now - last);
    last = now;
  }, 50);
}
