// The caller of ../caller.py for all JavaScript clients: what to say when, and lines that tell what the session told us.

export const CONNECTED = "Maria is on the line.";
export const OVER_MS = 1000; // of an answer, after which the second question is asked over it
export const PATIENCE_MS = 90_000;

/** Attend to one session of @openai/agents-realtime (`sdk`) over `transport`.
 *
 * `ask()` says the caller's next question. Returns the session, not yet connected, `sound(ms)` for pieces of replies
 * that were heard, and `satisfied`, a promise for the moment at which the tool's result has been said. */
export function attend(sdk, transport, ask, tell) {
  let asked = 0;
  let heard = 0;
  let answerMs = 0;
  const next = () => { asked += 1; ask(); };

  const transfer = sdk.tool({
    name: "transfer_call",
    description: "Puts through.",
    strict: false,
    parameters: { type: "object", properties: { to: { type: "string" } }, required: ["to"], additionalProperties: true },
    execute: ({ to }) => { tell({ saw: "tool", to }); return CONNECTED; },
  });
  const agent = new sdk.RealtimeAgent({
    name: "front-desk", instructions: "You answer the telephone of a restaurant.", tools: [transfer],
  });
  const session = new sdk.RealtimeSession(agent, { transport });
  session.on("audio_interrupted", () => tell({ saw: "interrupted" }));
  session.on("error", ({ error }) => tell({ saw: "error", text: JSON.stringify(error?.error ?? String(error)) }));
  session.on("history_updated", (history) => tell({ saw: "history", items: history.filter(isMessage).map(words) }));

  const satisfied = new Promise((resolve, reject) => {
    const impatient = setTimeout(() => reject(new Error("the tool's result was not said")), PATIENCE_MS);
    session.on("transport_event", (event) => {
      if (event.type === "response.output_audio.delta") return;
      tell({ saw: "event", type: event.type });
      if (event.type === "conversation.item.input_audio_transcription.completed") {
        heard += 1;
        tell({ saw: "heard", text: event.transcript });
      } else if (event.type === "response.done") {
        const text = event.response.output.filter(isMessage).map(words).join(" ");
        tell({ saw: "said", text });
        if (asked === 0) next();
        if (text.includes(CONNECTED)) {
          clearTimeout(impatient);
          resolve();
        }
      }
    });
  });
  const sound = (ms) => {
    if (heard !== 1) return;
    answerMs += ms;
    if (answerMs >= OVER_MS && asked === 1) next();
  };
  return { session, sound, satisfied };
}

export const isMessage = (item) => item.type === "message";
export const words = (item) => item.content.map((part) => part.transcript ?? part.text ?? "").join(" ");
