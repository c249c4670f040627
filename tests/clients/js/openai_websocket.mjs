// A call by OpenAIRealtimeWS of openai for Node.js, which speaks wss alone: NODE_EXTRA_CA_CERTS names the certificate.
// node openai_websocket.mjs URL FIRST SECOND, as ../caller.py says.

import { readFileSync } from "node:fs";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import { CONNECTED, OVER_MS, PATIENCE_MS, isMessage, words } from "./caller.mjs";
import { microphone } from "./microphone.mjs";

const [url, ...files] = process.argv.slice(2);
const questions = files.map((file) => readFileSync(file));
const tell = (line) => console.log(JSON.stringify(line));
const call = new OpenAIRealtimeWS({ model: "front-desk" }, new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" }));
const kept = new Map(); // the words of each message by its id, in their order
let mouth;
let asked = 0;
let heard = 0;
let answerMs = 0;
const next = () => { asked += 1; mouth.say(questions.shift()); };
const impatient = setTimeout(() => { throw new Error("the tool's result was not said"); }, PATIENCE_MS);

call.on("error", (error) => tell({ saw: "error", text: error.message }));
call.on("event", ({ type }) => { if (type !== "response.output_audio.delta") tell({ saw: "event", type }); });
call.on("session.created", () => {
  call.send({
    type: "session.update",
    session: {
      type: "realtime",
      instructions: "You answer the telephone of a restaurant.",
      tools: [{
        type: "function", name: "transfer_call", description: "Puts through.",
        parameters: { type: "object", properties: { to: { type: "string" } }, required: ["to"] },
      }],
    },
  });
  mouth = microphone((pcm) => call.send({ type: "input_audio_buffer.append", audio: pcm.toString("base64") }));
});
call.on("conversation.item.added", ({ item }) => { if (isMessage(item)) kept.set(item.id, ""); });
call.on("input_audio_buffer.speech_started", () => { if (answerMs) tell({ saw: "interrupted" }); });
call.on("conversation.item.input_audio_transcription.completed", ({ transcript }) => {
  heard += 1;
  tell({ saw: "heard", text: transcript });
});
call.on("response.output_audio.delta", ({ delta }) => {
  if (heard !== 1) return;
  answerMs += Buffer.from(delta, "base64").length / 48;
  if (answerMs >= OVER_MS && asked === 1) next();
});
call.on("response.done", ({ response }) => {
  for (const { call_id, arguments: given } of response.output.filter((item) => item.type === "function_call")) {
    tell({ saw: "tool", to: JSON.parse(given).to });
    call.send({ type: "conversation.item.create", item: { type: "function_call_output", call_id, output: CONNECTED } });
    call.send({ type: "response.create" });
  }
  const text = response.output.filter(isMessage).map(words).join(" ");
  tell({ saw: "said", text });
  if (asked === 0) next();
  if (!text.includes(CONNECTED)) return;
  clearTimeout(impatient);
  mouth.close();
  for (const id of kept.keys()) call.send({ type: "conversation.item.retrieve", item_id: id });
});
call.on("conversation.item.retrieved", ({ item }) => {
  kept.set(item.id, words(item));
  if (item.id !== [...kept.keys()].at(-1)) return;
  tell({ saw: "history", items: [...kept.values()] });
  call.close();
});
