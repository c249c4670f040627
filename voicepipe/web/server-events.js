// What the server says in a call, passed on to the transcript, the turns and the page.

import { errorSentence } from "./failures.js";
import { toolRows, toolsOf } from "./tools-used.js";
import { isMeasured, recordOf } from "./turn.js";

/** A function for each type of event that matters. `onCaller(speaks)`: the caller's voice began or ended.
 *  `onProblem(sentence)`: somebody should know. `languageOf(agent)`: its tag, "" where it is not known. */
export function handlers({ transcript, panel, onCaller, onProblem, languageOf }) {
  let agent = null;
  const showHeard = (item) => item.role === "assistant" && transcript.agentHeard(item.id, spokenText(item));
  return {
    "session.created": ({ session }) => {
      agent = session.model;
      transcript.agent = "Agent";
      transcript.lang = languageOf(agent);
    },
    "session.updated": ({ session }) => {
      if (agent && session.model !== agent) transcript.agent = `Agent ${session.model}`;
      if (session.model !== agent) transcript.lang = languageOf(session.model);
      agent = session.model;
    },
    "input_audio_buffer.speech_started": ({ item_id }) => {
      onCaller(true);
      transcript.callerSpeaks(item_id);
    },
    "input_audio_buffer.speech_stopped": ({ item_id }) => {
      onCaller(false);
      transcript.callerStopped(item_id);
    },
    "input_audio_buffer.committed": ({ item_id }) => {
      transcript.committed(item_id);
      panel.pending = true;
    },
    "conversation.item.input_audio_transcription.delta": ({ item_id, delta }) => transcript.callerWords(item_id, delta),
    "conversation.item.input_audio_transcription.completed": ({ item_id, transcript: words, languages }) =>
      transcript.callerSaid(item_id, words, languages?.[0]?.code),
    "conversation.item.input_audio_transcription.failed": ({ item_id }) => transcript.callerSaid(item_id, ""),
    "conversation.item.added": ({ item }) => {
      const typed = item.role === "user" && item.content?.find((part) => part.type === "input_text");
      if (typed) transcript.typed(item.id, typed.text);
    },
    "conversation.item.deleted": ({ item_id }) => transcript.remove(item_id),
    "conversation.item.retrieved": ({ item }) => showHeard(item),
    "response.created": ({ response }) => {
      const language = recordOf(response)?.language;
      if (language) transcript.lang = language;
    },
    "response.output_audio_transcript.delta": ({ item_id, delta }) => transcript.agentWords(item_id, delta),
    "response.output_text.delta": ({ item_id, delta }) => transcript.agentWords(item_id, delta),
    "response.output_item.done": ({ item }) => {
      transcript.agentDone(item.id, item.status);
      if (item.status === "incomplete") showHeard(item);
    },
    "response.done": ({ response }) => {
      const record = recordOf(response);
      const cut = response.status === "cancelled" && response.status_details?.reason === "turn_detected";
      // A reply that is cut before a word of it was heard came while the caller had not finished, flagged or not.
      const reopened = Boolean(record?.reopened) || (cut && !response.output.some(spokenText));
      if (reopened) transcript.reopened(response.output.map((item) => item.id));
      const tools = toolsOf(response);
      transcript.add(toolRows(tools), response.output.map((item) => item.id));
      const answer = response.output.map(spokenText).join(" ");
      if (isMeasured(record)) panel.put(response.id, { record: { ...record, reopened }, answer, tools });
      panel.settle();
    },
    error: ({ error }) => errorSentence(error) && onProblem(errorSentence(error)),
  };
}

function spokenText(item) {
  return item.content?.map((part) => part.transcript ?? part.text ?? "").join("") ?? "";
}
