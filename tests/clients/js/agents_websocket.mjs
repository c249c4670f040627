// A call by RealtimeSession of @openai/agents-realtime over its OpenAIRealtimeWebSocket, in Node.js.
// node agents_websocket.mjs URL FIRST SECOND, as ../caller.py says.

import { readFileSync } from "node:fs";
import * as sdk from "@openai/agents-realtime";
import { attend } from "./caller.mjs";
import { microphone } from "./microphone.mjs";

const [url, ...files] = process.argv.slice(2);
const questions = files.map((file) => readFileSync(file));
let mouth;

const transport = new sdk.OpenAIRealtimeWebSocket({
  url: `${url.replace("http", "ws")}/v1/realtime?model=front-desk`, useInsecureApiKey: true,
});
const tell = (line) => console.log(JSON.stringify(line));
const { session, sound, satisfied } = attend(sdk, transport, () => mouth.say(questions.shift()), tell);
session.on("audio", ({ data }) => sound(data.byteLength / 48));
await session.connect({ apiKey: "none" });

mouth = microphone(({ buffer, byteOffset, length }) => session.sendAudio(buffer.slice(byteOffset, byteOffset + length)));
await satisfied;
mouth.close();
session.close();
