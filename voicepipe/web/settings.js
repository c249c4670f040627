// What is chosen for the next call, from what the server offers: agents, voices by language, kinds of line.

import { bearer } from "./bearer.js";

const ITS_QUESTIONS = "front-desk"; // the agent to whom the page's examples can be said

const LANGUAGES = new Intl.DisplayNames(["en"], { type: "language" });

function languageName(tag) {
  try {
    return LANGUAGES.of(tag);
  } catch {
    return tag;
  }
}

/** [{label, voices: [{id, text}]}]: those of the agent's own language first, then the others. */
export function voiceGroups(voices, language) {
  const primary = (tag) => tag.toLowerCase().split("-")[0];
  const shown = voices.map(({ id, language }) => {
    const name = languageName(language);
    return { id, own: primary(language), text: name === id ? id : `${name} (${id})` };
  });
  shown.sort((a, b) => a.text.localeCompare(b.text, "en"));
  const own = shown.filter((voice) => voice.own === primary(language));
  const others = shown.filter((voice) => voice.own !== primary(language));
  const groups = [
    { label: languageName(primary(language)), voices: own },
    { label: "Other languages", voices: others },
  ];
  return groups.filter((group) => group.voices.length);
}

export class Settings {
  #agents = [];
  #voices = [];

  /** `$(id)` finds an element of the page. */
  constructor($) {
    this.$ = $;
    $("key").addEventListener("change", () => this.refresh());
    addEventListener("hashchange", () => this.#takeKey() && this.refresh());
    $("agent").addEventListener("change", () => this.#agentChosen());
    const sheet = $("settings");
    sheet.addEventListener("change", () => this.#sumUp());
    sheet.addEventListener("submit", (event) => {
      event.preventDefault(); // there is nowhere to send it: all count from the next call
      this.#close();
    });
    sheet.addEventListener("keydown", ({ key }) => key === "Escape" && this.#close());
    document.addEventListener("click", ({ target }) => (sheet.open &&= sheet.contains(target)));
    this.#takeKey();
    this.refresh();
  }

  /** The tag of the agent's language; "" where it is not known. */
  languageOf(agent) {
    return this.#agents.find(({ id }) => id === agent)?.language ?? "";
  }

  /** {model, voice, line, key}; "" where the server is to choose. */
  get values() {
    const $ = this.$;
    return { model: $("agent").value, voice: $("voice").value, line: $("line").value, key: $("key").value.trim() };
  }

  useWebSocket() {
    this.$("line").value = "websocket";
    this.#sumUp();
  }

  /** A key in the page's address, "#key=...", is then no longer there; it was never sent with a request. */
  #takeKey() {
    const key = new URLSearchParams(location.hash.slice(1)).get("key");
    if (!key) return false;
    this.$("key").value = key;
    history.replaceState(null, "", location.pathname + location.search);
    return true;
  }

  /** Ask what the server offers. What was chosen stays chosen if there still is such a thing. */
  async refresh() {
    const { key } = this.values;
    [this.#agents, this.#voices] = await Promise.all([list("/v1/models", key), list("/v1/voices", key)]);
    const agents = this.#agents.map(({ id }) => option(id, id));
    fill(this.$("agent"), agents.length ? agents : [option("", "default agent")]);
    this.#agentChosen();
    this.#sumUp();
  }

  #agentChosen() {
    const agent = this.#agents.find(({ id }) => id === this.$("agent").value);
    this.#offerVoices(agent);
    this.$("lacks").textContent = agent?.lacks ?? "";
    this.$("lacks").hidden = !agent?.lacks;
    this.$("examples").hidden = agent?.id !== ITS_QUESTIONS;
  }

  #offerVoices(agent) {
    const own = option("", agent?.voice ? `the agent's own (${agent.voice})` : "the agent's own");
    const groups = voiceGroups(this.#voices, agent?.language ?? "en").map(({ label, voices }) => {
      const group = Object.assign(document.createElement("optgroup"), { label });
      group.append(...voices.map(({ id, text }) => option(id, text)));
      return group;
    });
    fill(this.$("voice"), [own, ...groups]);
  }

  /** What is chosen, where it can be seen without opening the sheet. */
  #sumUp() {
    const chosen = [this.$("agent"), this.$("line")];
    this.$("chosen").textContent = chosen.map((select) => select.selectedOptions[0]?.text).join(" · ");
  }

  #close() {
    this.$("settings").open = false;
    this.$("settings").querySelector("summary").focus();
  }
}

/** Empty where the server wants a key, or another one, or does not answer: a call will tell why. */
async function list(path, key) {
  try {
    const answer = await fetch(path, { headers: bearer(key) });
    return answer.ok ? (await answer.json()).data : [];
  } catch {
    return [];
  }
}

function option(value, text) {
  return Object.assign(document.createElement("option"), { value, textContent: text });
}

function fill(select, options) {
  const chosen = select.value;
  select.replaceChildren(...options);
  const still = [...select.options].some(({ value }) => value === chosen);
  select.value = still ? chosen : select.options[0].value;
}
