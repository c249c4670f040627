"""The agent that answers calls, which is immutable: one file of configs/agents/."""

import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from voicepipe.base.ranges import (
    FUNCTION,
    LANGUAGE,
    HookWait,
    Ms,
    Name,
    Positive,
    Speed,
    Temperature,
    Variable,
    Wait,
    is_url,
)
from voicepipe.base.secret_source import SecretPair, check_pairs
from voicepipe.base.words import plain

LanguageTag = Annotated[str, Meta(pattern=LANGUAGE)]
"""BCP 47."""
Part = Literal[
    "instructions", "tools", "tool_choice", "voice", "speed", "turn_detection", "output_modalities",
    "max_output_tokens", "conversation",
]  # fmt: skip
"""Parts of a session that clients can be kept from changing; "conversation": all but the caller's words, and results
of the client's own tools."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A function that the model may call."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    """JSON Schema of the arguments."""


class Webhook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent's tool that is an HTTP endpoint. It gets a POST of {"name", "arguments", "call_id", "call"}; the body of
    any 2xx answer is the result.

    `call_id` is this use of the tool, `call` the phone call: {"id", "caller", "called", "headers"}.
    """

    url: str
    headers: dict[str, str] = {}


class Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent's tool, which runs on the server: exactly one of `webhook` and `function`."""

    name: Annotated[str, Meta(pattern=FUNCTION)]
    """Name of the function, as servers of language models take it."""
    description: str = ""
    parameters: dict[str, Any] = {}
    """JSON Schema of the arguments."""
    webhook: Webhook | None = None
    function: str = ""
    """`module:function`; called with the arguments as keywords, in a thread unless it is async. Its parameter `call`,
    if it has one that is not among `parameters`, is what a webhook gets as "call"."""
    timeout_ms: Wait = 3000
    while_running: tuple[str, ...] = ()
    """Said one after the other while it runs, the last one again and again, never over other sound or its result."""
    while_running_after_ms: Ms = 700
    """The first one is said when the caller has heard nothing for so long, be it since their own last word, ..."""
    while_running_every_ms: Wait = 4000
    """... and each further one."""
    reads_only: bool = False
    """It changes nothing: it may be run, for nothing perhaps, while the caller might still go on."""
    interruptible: bool = False
    """It is cancelled when the caller interrupts the reply that waits for it."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, self.parameters)


class Hooks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where records of calls are sent by HTTP."""

    after_call: str = ""
    """URL to which the record of a call is posted once it has ended; empty: none."""
    secret_env: Variable = ""
    """Names the environment variable with the key that signs it ("whsec_..."), by standardwebhooks.com, ..."""
    secret_file: str = ""
    """... or the file with it."""
    secret = SecretPair()

    def __post_init__(self) -> None:
        check_pairs(self)
        if self.after_call and not is_url(self.after_call):
            raise ValueError(
                f"after_call: {self.after_call!r} is no address; give one such as https://example.com/after-call"
            )
        if bool(self.after_call) != bool(self.secret):
            raise ValueError(
                "after_call and secret_env go together (or secret_file): records are sent signed, or not at all"
            )


GIVEN = {
    "before_call": ("call", "agent", "door", "pop", "tenant"),
    "on_turn": ("call", "turn", "agent", "pop", "tenant"),
    "after_call": ("record",),
}
"""What each hook is given: the arguments of a function, which gets those that it takes, and the keys of a body."""


class AgentHooks(Hooks, frozen=True, forbid_unknown_fields=True):
    """Code of an agent's owner that is asked, or told, about its calls: a URL each, or `module:function` as tools have
    it. A secret signs what is sent to URLs; `after_call` by URL needs one."""

    before_call: str = ""
    """Asked about each call before it is answered; empty: nobody is."""
    before_call_ms: HookWait = 1000
    """Then the call is answered as this file says."""
    agents: tuple[Name, ...] = ()
    """Names of the agents that may answer in place of this one, if `before_call` or `incoming_call` says so."""
    incoming_call: str = ""
    """A URL that gets OpenAI's `realtime.call.incoming` while a telephone rings; empty: nobody does."""
    incoming_call_ms: HookWait = 10_000
    """A call that is neither accepted nor rejected by then is answered as this file says."""
    on_turn: str = ""
    """Told of each turn once its reply is over."""

    @property
    def targets(self) -> dict[str, str]:
        """The hooks that there are: key -> URL or function."""
        hooks = {
            "before_call": self.before_call,
            "incoming_call": self.incoming_call,
            "on_turn": self.on_turn,
            "after_call": self.after_call,
        }
        return {key: target for key, target in hooks.items() if target}

    @property
    def asked_ms(self) -> int:
        """For so long whoever is asked before a phone call is answered may take; 0: nobody is asked."""
        return self.before_call_ms if self.before_call else self.incoming_call_ms if self.incoming_call else 0

    def __post_init__(self) -> None:
        check_pairs(self)
        for key, target in self.targets.items():
            if not is_url(target) and ("://" in target or not re.fullmatch(r".+:\w+", target)):
                raise ValueError(
                    f"{key}: {target!r} is neither an address nor a function; give one such as "
                    f'https://example.com/hook, or "hooks:{key}" for the function {key} in hooks.py beside this file'
                )
        if is_url(self.after_call) and not self.secret:
            raise ValueError(
                "after_call and secret_env go together (or secret_file): a record goes to a URL signed, or not at all"
            )
        if self.secret and not any(map(is_url, self.targets.values())):
            raise ValueError(
                f"{self.secret.key_at('secret')}: signs what is sent to a URL, and no hook here is one; leave it out"
            )
        if self.before_call and self.incoming_call:
            raise ValueError("before_call and incoming_call: one is asked about a call; leave out the other")
        if self.incoming_call and not (is_url(self.incoming_call) and self.secret):
            raise ValueError(
                "incoming_call: goes to a URL, signed: give one such as https://example.com/incoming, and secret_env "
                "(or secret_file)"
            )
        if self.agents and not self.asked_ms:
            raise ValueError(
                "agents: before_call or incoming_call says which of them answers; set one, or leave agents out"
            )


class Intent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that callers want, for the embedded engine (`frontdesk`)."""

    name: str
    examples: Annotated[tuple[str, ...], Meta(min_length=1)]
    reply: str = ""
    """Text with {slots}. Several sentences are fine: the first is spoken while the rest is prepared."""
    slots: dict[str, str] = {}
    """Slot name -> the question that asks for it, in the order in which they are asked."""
    check: str = ""
    """A tool that is called with the slots that it takes, when those that it requires are known and whenever one is
    changed. It may answer `{"about": SLOT, "problem": TEXT}`: that slot is asked for again. Other keys of its answer
    that are slots fill them."""
    confirm: str = ""
    """A question with {slots}, once all are filled: the caller says yes, no, or what is different."""
    denied: str = "What should be different?"
    """Said after a no. A question keeps the task open for what is different; after another sentence it is over."""
    tool: str = ""
    """Called with the slots once all are filled, and confirmed where `confirm` asks; its result is {result} in `reply`.
    It may answer as `check` does."""
    listens: bool = False
    """The caller wants silence: an open question is not asked again after the reply."""
    transfer: str = ""
    """An entry of the agent's `transfer`: after the reply the tool `transfer_call` is called with it, the client's or,
    on a line that can transfer its caller, ours."""
    hand_over: str = ""
    """An entry of the agent's `hand_over`: that agent goes on behind the reply. Where it cannot, `cannot_transfer` is
    said in place of the reply."""
    end_call: bool = False
    """After the reply the tool `end_call` is called, if the agent may hang up."""


class Intents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file that an agent's `intents_file` names."""

    intents: tuple[Intent, ...]


Keep = Literal["all", "summary", "last"]


class HandOver(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When an agent hands its caller over to another agent of the PoP, and what that one reads of the conversation."""

    when: str
    """For the model: in which case, as it would be told to a colleague."""
    keep: Keep = "all"
    """What the other agent reads: everything, the caller's last words with a summary that the model writes, or the
    caller's last words alone."""


class Pronunciation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a word is said, for voices that read the IPA and for those that do not."""

    ipa: str = ""
    """Its sounds in the International Phonetic Alphabet, with or without the slashes around them."""
    spelling: str = ""
    """Letters that are read as the word is said: "Shivawn"."""

    @classmethod
    def of(cls, said: "str | Pronunciation") -> "Pronunciation":
        """What an entry of `Agent.pronounce` says: a text between slashes is IPA, any other a spelling."""
        if isinstance(said, Pronunciation):
            return cls(said.ipa.strip().strip("/"), said.spelling)
        text = said.strip()
        between = len(text) > 1 and text[0] == text[-1] == "/"
        return cls(ipa=text.strip("/")) if between else cls(spelling=text)


class Agent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent that answers calls: one file of configs/agents/."""

    name: Name
    instructions: str = ""
    greeting: str = ""
    model: str = ""
    """The language model's name, where the engine has several: at a server of the OpenAI kind, or a LoRA adapter of
    vLLM's; empty: the PoP's."""
    temperature: Temperature | None = None
    """Of the language model; None: as the PoP's configuration has it, as for `max_tokens`."""
    max_tokens: Positive | None = None
    """Tokens of a reply, at most; a client may ask for fewer."""
    voice: str = ""
    speed: Speed = 1.0
    pronounce: dict[str, str | Pronunciation] = {}
    """A word, or several -> how every voice says it. What people read stays as it is written."""
    language: LanguageTag = "en"
    languages: tuple[LanguageTag, ...] = ()
    """Those in which callers may speak, `language` among them, in which it begins; empty: that one alone."""
    voices: dict[LanguageTag, str] = {}
    """Language -> the voice that speaks it, where `voice` does not."""
    time_zone: str = ""
    """IANA name of the time zone in which it tells dates and times, such as "Europe/Berlin"; empty: the host's."""
    variables: dict[str, str] = {}
    """Names that may stand in its texts as {{name}} -> the value in a call for which nothing else is said
    (`conversation/variables.py`)."""
    vocabulary: tuple[str, ...] = ()
    """Names and words that callers say, as they are written, for recognisers that can expect some."""
    interrupt: tuple[str, ...] = ("stop", "wait", "no", "hold on", "excuse me")
    """Words that cut a reply at once when the caller says them over it."""
    acknowledgement: str = "One moment."
    fallback: str = "Sorry, I am having trouble right now. Could you say that again?"
    no_input: tuple[str, ...] = ("Are you still there?", "I cannot hear you, so I will say goodbye.")
    """Said after each silence; the last one ends the call."""
    no_input_ms: Wait = 8000
    hold_music_ms: Ms = 180_000
    """How long sound without a voice, such as hold music, keeps back the last text of `no_input`, which hangs up."""
    tools: tuple[Tool, ...] = ()
    transfer: dict[str, str] = {}
    """Name -> where a caller can be transferred to: a phone number, or an address (sip:, sips:, tel:)."""
    transfer_ms: Wait = 30_000
    """An attempt that nobody has answered by then has failed."""
    transfer_failed: str = "I am sorry, nobody can take your call right now. Can I help you myself?"
    """Said by `frontdesk` when an attempt has failed, where a program asked for it, and to callers whom Twilio hands
    back; otherwise a model finds its own words."""
    cannot_transfer: str = "I am sorry, I cannot put you through from here."
    """Said by `frontdesk` to callers who want to be put through, in a call that cannot be transferred."""
    hand_over: dict[str, HandOver] = {}
    """Name of another agent of the PoP -> when it takes the call over: the model gets the tool `hand_over`."""
    end_call: bool = False
    """The model may hang up: it gets the tool `end_call`. The call ends once its last words have been heard, unless the
    caller speaks up before."""
    goodbye: str = ""
    """Said by a model's reply that hangs up without a word."""
    send_keys: bool = False
    """The model may press keys, for another telephone system's menu: it gets the tool `send_keys`, where the line takes
    keys."""
    keys: dict[str, str] = {}
    """Keys of the caller's telephone -> what the caller means by them, as the model reads it."""
    key_pause_ms: Ms = 2000
    """Keys belong together while no pause between two is longer; 0: each is a turn of its own."""
    intents: tuple[Intent, ...] = ()
    intents_file: str = ""
    """A TOML file with the `intents`, one folder below: few of those who read an agent read its phrases."""
    locked: tuple[Part, ...] = ()
    """What no client can change, whatever its key."""
    hooks: AgentHooks = AgentHooks()
    """Code that is asked or told about its calls. Where it has no `after_call`, that of the call's tenant gets the
    records."""
    not_understood: tuple[str, ...] = ("Sorry, I did not catch that. Could you say it again?",)
    """Said to a turn without words, by `frontdesk` also to words that it cannot place; rotated, so that a caller who
    is not understood twice does not hear the same words."""

    @property
    def spoken(self) -> tuple[LanguageTag, ...]:
        """The languages in which it answers."""
        return self.languages or (self.language,)

    @property
    def reads_ahead(self) -> bool:
        """Whether it has tools that only read, which may run while the caller speaks."""
        return any(tool.reads_only for tool in self.tools)

    def is_interrupted(self, said: str) -> bool:
        """Whether a phrase of `interrupt` is among these words, however they are written."""
        return any(f" {plain(phrase)} " in f" {plain(said)} " for phrase in self.interrupt)
