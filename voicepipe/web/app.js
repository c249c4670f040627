// Wires the page: buttons and devices to the call, the call to the transcript and the turns.

import { loudness } from "./audio.js";
import { Call } from "./call.js";
import { insecureOrigin, microphoneFailure } from "./failures.js";
import { FirstSound } from "./first-sound.js";
import { Microphone } from "./microphone.js";
import { Places } from "./places.js";
import { handlers } from "./server-events.js";
import { Settings } from "./settings.js";
import { Transcript } from "./transcript.js";
import { TurnPanel } from "./turn-panel.js";

const $ = (id) => document.getElementById(id);

const transcript = new Transcript($("transcript"), $("scroll"), () => ($("conversation-empty").hidden = true));
const panel = new TurnPanel($);
const settings = new Settings($);
const microphone = new Microphone(() => {
  notice("The microphone was disconnected. Plug it in and press the button again, or type.");
  render();
});
const places = new Places();
const call = new Call({
  settings: () => settings.values,
  microphone,
  places,
  conversation: transcript,
  onState: entered,
  onEvent: (event) => {
    firstSound.hear(event);
    handle[event.type]?.(event);
  },
  onInstead: () => settings.useWebSocket(),
  onTrip: showPlace,
});
const firstSound = new FirstSound(() => call.sent(), (id, record) => panel.put(id, { record, answer: "", tools: [] }));
const handle = handlers({ transcript, panel, onCaller: (speaks) => (callerSpeaks = speaks), onProblem: notice,
  languageOf: (agent) => settings.languageOf(agent) });
let callerSpeaks = false;
let inCall = false;
let watching = false;

// Buttons.

$("talk").addEventListener("click", async () => {
  if (call.state === "connecting") return;
  if (call.state === "waiting") return call.start();
  notice("");
  if (microphone.open && call.state === "live") {
    microphone.muted = !microphone.muted;
    return render();
  }
  const problem = insecureOrigin(location);
  if (problem) return notice(problem);
  call.unlock();
  try {
    // First, so that nobody is greeted while the browser asks.
    if (!(await microphone.start())) return; // hung up meanwhile
  } catch (error) {
    return notice(microphoneFailure(error));
  }
  if (call.state === "connecting") return; // by another click, or by typing, meanwhile
  if (call.state !== "live") return call.start();
  call.listen();
  render();
});

$("hang-up").addEventListener("click", () => call.stop());
window.addEventListener("pagehide", () => call.stop());
$("key").addEventListener("change", () => places.measure(settings.values.key));

$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("message").value.trim();
  if (!text) return;
  $("message").value = "";
  say(text);
});
$("examples").addEventListener("click", ({ target }) => {
  if (target.type !== "button") return;
  $("message").focus(); // the button goes
  say(target.textContent);
});

function say(text) {
  call.unlock();
  transcript.typing(text);
  call.say(text);
}

// Sound.

function level(id, rms) {
  $(id).style.setProperty("--level", loudness(rms).toFixed(3));
}

function watchLevels() {
  level("agent-level", call.rms);
  level("caller-level", microphone.muted ? 0 : microphone.rms);
  $("talk").style.setProperty("--level", $("caller-level").style.getPropertyValue("--level"));
  renderStatus();
  watching = inCall || call.sounding;
  if (watching) requestAnimationFrame(watchLevels);
}

// The state of the call.

function entered(state, sentence) {
  notice(sentence);
  callerSpeaks = false;
  if (inCall && !call.goesOn) transcript.end(sentence ? "The call ended" : "You hung up");
  else if (inCall && state !== "live") transcript.broken();
  if (call.goesOn && !inCall) {
    panel.newCall();
    settings.refresh();
  }
  inCall = call.goesOn;
  if (state !== "live") panel.settle(); // what was being answered comes to no end
  panel.pending = false;
  if (state === "idle" || state === "failed") {
    microphone.stop();
    transcript.notSent();
  }
  render();
  if (!watching) watchLevels();
}

/** Of the PoP that has the call; `name` is "" where no directory has placed one. */
function showPlace(name, ms) {
  $("place").textContent = name && `at ${name}, ${Math.max(1, Math.round(ms))} ms away`;
  $("place").hidden = !name;
}

function notice(sentence) {
  $("notice").textContent = sentence;
  $("notice").hidden = !sentence;
}

const STATUS = { idle: "Ready", connecting: "Connecting …", waiting: "Waiting to try again", failed: "Not connected" };

function renderStatus() {
  const talking = call.sounding ? "The agent is speaking" : callerSpeaks ? "Hearing you" : "Listening";
  const live = microphone.open && !microphone.muted ? talking : call.sounding ? talking : "On the line, not listening";
  const status = call.state === "live" ? live : STATUS[call.state];
  if ($("status").textContent !== status) $("status").textContent = status;
}

function render() {
  const live = call.state === "live";
  const listening = live && microphone.open;
  const start = call.state === "waiting" ? "Try again now" : "Start talking";
  $("talk-label").textContent = !listening ? start : microphone.muted ? "Unmute" : "Mute";
  // Not `disabled`: a button that is loses the focus.
  $("talk").setAttribute("aria-disabled", call.state === "connecting");
  document.body.dataset.call = listening && !microphone.muted ? "open" : call.state;
  $("hang-up").hidden = call.state === "idle" || call.state === "failed";
  $("hang-up").textContent = live ? "Hang up" : "Cancel";
  renderStatus();
}

render();
places.measure(settings.values.key);
