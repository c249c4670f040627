// A caller's microphone in Node.js.

const BLOCK_MS = 20;
const BLOCK = 960; // bytes of 20 ms

/** `send(block)` gets 20 ms of s16le at 24 kHz at a time, in real time, from now on. Returns `say(pcm)`, and `close()`. */
export function microphone(send) {
  let saying = Buffer.alloc(0);
  let blocks = 0;
  const start = performance.now();
  const timer = setInterval(() => {
    for (; blocks * BLOCK_MS < performance.now() - start; blocks += 1) {
      const block = Buffer.alloc(BLOCK);
      saying.copy(block, 0, 0, BLOCK);
      saying = saying.subarray(BLOCK);
      send(block);
    }
  }, BLOCK_MS);
  return { say: (pcm) => { saying = pcm; }, close: () => clearInterval(timer) };
}
