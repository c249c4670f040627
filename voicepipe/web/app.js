// Wires the page: buttons and devices to the call, the call's events to the transcript and the waterfall.

import { loudness, Microphone, Speaker } from "./audio.js";
import { Call } from "./call.js";
import { errorSentence, insecureOrigin, microphoneFailure } from "./failures.js";
import { fromBase64 } from "./realtime.js";
import { Transcript } from "./transcript.js";
import { BUDGET_MS, chipsOf, isMeasured, recordOf, stagesOf, tallyOf, whyOf } from "./turn.js";
import { draw } from "./waterfall.js";

const $ = (id) => document.getElementById(id);

const speaker = new Speaker();
const transcript = new Transcript($("transcript"), $("scroll"), () => ($("conversation-empty").hidden = true));
const microphone = new Microphone(heard, () => {
  notice("The microphone was disconnected. Plug it in and press the button again, or type.");
  render();
});
const call = new Call({
  settings: () => ({ model: $("agent").value.trim() || "front-desk", key: $("key").value.trim() }),
  onState: entered,
  onEvent: (event) => EVENTS[event.type]?.(event),
});
let callerSpeaks = false;
let turns = []; // records of this call's measured turns
let connected = false;
let watching = false;

// Buttons.

$("talk").addEventListener("click", async () => {
  if (call.state === "connecting") return;
  notice("");
  if (microphone.open && call.state === "live") {
    microphone.muted = !microphone.muted;
    return render();
  }
  const problem = insecureOrigin(location);
  if (problem) return notice(problem);
  speaker.unlock();
  try {
    await microphone.start(); // first, so that nobody is greeted while the browser asks
  } catch (error) {
    return notice(microphoneFailure(error));
  }
  if (call.state === "live") render();
  else call.start();
});

$("hang-up").addEventListener("click", () => {
  call.stop();
  speaker.flush();
});
$("retry").addEventListener("click", () => call.start());

$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("message").value.trim();
  if (!text) return;
  $("message").value = "";
  speaker.unlock();
  interrupt();
  transcript.typing(text);
  call.say(text);
});

// Sound.

function heard(pcm, rms) {
  call.append(pcm);
  level("caller-level", microphone.muted ? 0 : rms);
}

/** Silence, at once; the server learns how much was heard, so that its history says what the caller knows. */
function interrupt() {
  for (const { itemId, ms } of speaker.flush()) call.truncate(itemId, ms);
}

function level(id, rms) {
  $(id).style.setProperty("--level", loudness(rms).toFixed(3));
}

function watchLevels() {
  level("agent-level", speaker.rms);
  if (!microphone.open) level("caller-level", 0);
  $("talk").style.setProperty("--level", $("caller-level").style.getPropertyValue("--level"));
  renderStatus();
  watching = connected || speaker.sounding;
  if (watching) requestAnimationFrame(watchLevels);
}

// What the server says.

const EVENTS = {
  "input_audio_buffer.speech_started": ({ item_id }) => {
    callerSpeaks = true;
    interrupt();
    transcript.callerSpeaks(item_id);
  },
  "input_audio_buffer.speech_stopped": ({ item_id }) => {
    callerSpeaks = false;
    transcript.callerStopped(item_id);
  },
  "input_audio_buffer.committed": ({ item_id }) => transcript.committed(item_id),
  "conversation.item.input_audio_transcription.delta": ({ item_id, delta }) => transcript.callerWords(item_id, delta),
  "conversation.item.input_audio_transcription.completed": (event) =>
    transcript.callerSaid(event.item_id, event.transcript),
  "conversation.item.input_audio_transcription.failed": ({ item_id }) => transcript.callerSaid(item_id, ""),
  "conversation.item.added": ({ item }) => {
    const typed = item.role === "user" && item.content?.find((part) => part.type === "input_text");
    if (typed) transcript.typed(item.id, typed.text);
  },
  "conversation.item.deleted": ({ item_id }) => transcript.remove(item_id),
  "conversation.item.retrieved": ({ item }) => showHeard(item),
  "response.output_audio.delta": ({ item_id, delta }) => speaker.play(item_id, fromBase64(delta)),
  "response.output_audio_transcript.delta": ({ item_id, delta }) => transcript.agentWords(item_id, delta),
  "response.output_text.delta": ({ item_id, delta }) => transcript.agentWords(item_id, delta),
  "response.output_item.done": ({ item }) => {
    transcript.agentDone(item.id, item.status);
    if (item.status === "incomplete") showHeard(item);
  },
  "response.done": ({ response }) => {
    const record = recordOf(response);
    const nothingHeard = response.status === "cancelled" && !response.output.some(spokenText);
    if (record?.reopened || (nothingHeard && response.status_details?.reason === "turn_detected")) {
      transcript.reopened(response.output.map((item) => item.id));
    }
    if (isMeasured(record)) showTurn(record);
  },
  error: ({ error }) => errorSentence(error) && notice(errorSentence(error)),
};

function spokenText(item) {
  return item.content?.map((part) => part.transcript ?? part.text ?? "").join("") ?? "";
}

function showHeard(item) {
  if (item.role === "assistant") transcript.agentHeard(item.id, spokenText(item));
}

function showTurn(record) {
  turns.push(record);
  const stages = stagesOf(record);
  $("turn-empty").hidden = true;
  $("turn").hidden = false;
  $("latency").textContent = Math.round(record.turn_latency);
  $("turn").classList.toggle("late", record.turn_latency > BUDGET_MS);
  $("chips").replaceChildren(...chipsOf(record).map(({ text, tone }) => made("li", text, tone)));
  draw($("waterfall"), stages, BUDGET_MS);
  $("why").textContent = whyOf(record);
  $("tally").textContent = tallyOf(turns);
  const rows = stages.map(({ name, from, to }) => {
    const row = made("tr");
    row.append(made("th", name), ...[from, to, to - from].map((ms) => made("td", Math.round(ms))));
    row.firstChild.scope = "row";
    return row;
  });
  $("stages").replaceChildren(...rows);
}

function made(name, text = "", className = "") {
  return Object.assign(document.createElement(name), { textContent: text, className });
}

// The state of the call.

function entered(state, sentence) {
  notice(sentence);
  callerSpeaks = false;
  if (connected && state !== "live") transcript.end(sentence ? "The call ended" : "You hung up");
  connected = state === "live";
  if (connected) turns = [];
  if (state === "idle" || state === "failed") microphone.stop();
  render();
  if (!watching) watchLevels();
}

function notice(sentence) {
  $("notice").textContent = sentence;
  $("notice").hidden = !sentence;
}

const STATUS = { idle: "Ready", connecting: "Connecting …", waiting: "Waiting to try again", failed: "Not connected" };

function renderStatus() {
  const talking = speaker.sounding ? "The agent is speaking" : callerSpeaks ? "Hearing you" : "Listening";
  const live = microphone.open && !microphone.muted ? talking : speaker.sounding ? talking : "On the line, not listening";
  const status = call.state === "live" ? live : STATUS[call.state];
  if ($("status").textContent !== status) $("status").textContent = status;
}

function render() {
  const live = call.state === "live";
  const label = !microphone.open || !live ? "Start talking" : microphone.muted ? "Unmute" : "Mute";
  $("talk-label").textContent = label;
  // Not `disabled`: a button that is loses the focus.
  $("talk").setAttribute("aria-disabled", call.state === "connecting");
  document.body.dataset.call = live && microphone.open && !microphone.muted ? "open" : call.state;
  $("hang-up").hidden = call.state === "idle" || call.state === "failed";
  $("retry").hidden = call.state !== "waiting";
  renderStatus();
}

render();
