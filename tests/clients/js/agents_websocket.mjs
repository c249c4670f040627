// A call by RealtimeSession of @openai/agents-realtime over its OpenAIRealtimeWebSocket, in Node.js.
// node agents_websocket.mjs URL FIRST SECOND, as ../caller.py says.

import { readFileSync } from "node:fs";
import * as sdk from "@openai/agents-realtime";
import { attend } from "./caller.mjs";

const BLOCK_MS = 20;
const BLOCK = 960; // bytes of 20 ms

const [url, ...files] = process.argv.slice(2);
const questions = files.map((file) => readFileSync(file));
let saying = Buffer.alloc(0);

const transport = new sdk.OpenAIRealtimeWebSocket({
  url: `${url.replace("http", "ws")}/v1/realtime?model=front-desk`, useInsecureApiKey: true,
});
const tell = (line) => console.log(JSON.stringify(line));
const { session, sound, satisfied } = attend(sdk, transport, () => { saying = questions.shift(); }, tell);
session.on("audio", ({ data }) => sound(data.byteLength / 48));
await session.connect({ apiKey: "none" });

const start = performance.now();
let blocks = 0;
const microphone = setInterval(() => {
  for (; blocks * BLOCK_MS < performance.now() - start; blocks += 1) {
    const block = Buffer.alloc(BLOCK);
    saying.copy(block, 0, 0, BLOCK);
    saying = saying.subarray(BLOCK);
    session.sendAudio(block.buffer.slice(block.byteOffset, block.byteOffset + BLOCK));
  }
}, BLOCK_MS);
await satisfied;
clearInterval(microphone);
session.close();
