"""The session object that a client sees and updates, and the `CallSettings` that follow from it. Pure."""

from collections.abc import Callable
from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from voicepipe.agent import ToolSpec
from voicepipe.call_settings import CallSettings, SemanticVad, ServerVad
from voicepipe.ingress.wire_errors import WireError, wire_error

MODEL = "voicepipe"
"""The value of `transcription.model` unless the client gives another. Any name is accepted; the PoP's recogniser is
used."""

VOICE = "audio.output.voice"
"""Path of the voice in a session."""
SLOWEST, FASTEST = 0.25, 4.0

MaxTokens = Literal["inf"] | Annotated[int, Meta(ge=1, le=1_000_000)]


class PcmFormat(Struct, frozen=True, tag_field="type", tag="audio/pcm"):
    """PCM: mono, 16 bits, little-endian."""

    rate: Literal[24000] = 24000


class PcmuFormat(Struct, frozen=True, tag_field="type", tag="audio/pcmu"):
    """G.711 mu-law at 8 kHz."""


class PcmaFormat(Struct, frozen=True, tag_field="type", tag="audio/pcma"):
    """G.711 A-law at 8 kHz."""


Format = PcmFormat | PcmuFormat | PcmaFormat


class Transcription(Struct, frozen=True):
    """How the caller's words are recognised."""

    model: str = MODEL
    language: str | None = None
    prompt: str | None = None


class AudioInput(Struct, frozen=True):
    """The caller's sound: format, turn detection, recognition."""

    format: Format = PcmFormat()
    noise_reduction: None = None
    transcription: Transcription | None = Transcription()
    turn_detection: ServerVad | SemanticVad | None = SemanticVad()


class AudioOutput(Struct, frozen=True):
    """The sound of replies: format, voice, speed."""

    format: Format = PcmFormat()
    voice: str = ""
    speed: Annotated[float, Meta(ge=SLOWEST, le=FASTEST)] = 1.0


class Audio(Struct, frozen=True):
    """The `audio` of a session, both ways."""

    input: AudioInput = AudioInput()
    output: AudioOutput = AudioOutput()


class ToolJson(Struct, frozen=True):
    """A tool as a session lists it."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    type: Literal["function"] = "function"

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description or "", self.parameters or {})

    @classmethod
    def of(cls, spec: ToolSpec) -> "ToolJson":
        return cls(spec.name, spec.description, spec.parameters)


class NamedTool(Struct, frozen=True):
    """A choice of one tool by its name."""

    name: str
    type: Literal["function"] = "function"


ToolChoice = Literal["auto", "none", "required"] | NamedTool


def tool_choice(choice: ToolChoice) -> str:
    """The tool choice as in `CallSettings`: a word, or the name of the tool that must be called."""
    return choice.name if isinstance(choice, NamedTool) else choice


class Session(Struct, frozen=True, kw_only=True):
    """The whole effective session, as `session.created` and `session.updated` show it."""

    id: str
    model: str
    """The agent that answers."""
    expires_at: int = 0
    """Unix seconds."""
    object: Literal["realtime.session"] = "realtime.session"
    type: Literal["realtime"] = "realtime"
    output_modalities: Annotated[tuple[Literal["audio", "text"], ...], Meta(min_length=1, max_length=1)] = ("audio",)
    instructions: str = ""
    audio: Audio = Audio()
    tools: tuple[ToolJson, ...] = ()
    tool_choice: ToolChoice = "auto"
    max_output_tokens: MaxTokens = "inf"
    truncation: Literal["auto"] = "auto"
    tracing: None = None
    prompt: None = None
    include: None = None

    @classmethod
    def of(cls, settings: CallSettings, *, id: str, expires_at: int = 0) -> "Session":
        """The session of a call whose client has changed nothing yet."""
        return cls(
            id=id,
            model=settings.agent.name,
            expires_at=expires_at,
            output_modalities=(settings.modality,),
            instructions=settings.instructions,
            audio=Audio(
                AudioInput(turn_detection=settings.turn_detection),
                AudioOutput(voice=settings.voice, speed=_shown_speed(settings)),
            ),
            tools=tuple(map(ToolJson.of, settings.tools)),
            tool_choice=_tool_choice_json(settings.tool_choice),
            max_output_tokens=settings.max_tokens or "inf",
        )

    def of_agent(self, settings: CallSettings) -> "Session":
        """This session once the agent of `settings` has taken the call over."""
        its = Session.of(settings, id=self.id, expires_at=self.expires_at)
        for path in ("audio.input.format", "audio.input.transcription", "audio.output.format"):
            its = its.replaced(path, attrgetter(path)(self))
        return its

    def settings(self, base: CallSettings) -> CallSettings:
        """`base` with all values of this session that concern the call."""
        return msgspec.structs.replace(
            base,
            instructions=self.instructions,
            voice=self.audio.output.voice,
            speed=self.audio.output.speed,
            tools=tuple(tool.spec for tool in self.tools),
            tool_choice=tool_choice(self.tool_choice),
            modality=self.output_modalities[0],
            max_tokens=None if self.max_output_tokens == "inf" else self.max_output_tokens,
            turn_detection=self.audio.input.turn_detection,
        )

    def replaced(self, path: str, value: Any) -> "Session":
        """This session with another value at `path`, such as "audio.output.voice"."""
        session: Session = _replaced(self, path.split("."), value)
        return session

    def updated(self, patch: dict[str, Any]) -> "Session":
        """This session with a client's partial one merged into it. Raises WireError; then nothing has changed."""
        if patch.get("type", "realtime") != "realtime":
            raise WireError("invalid_value", "Invalid value for 'session.type': sessions here are 'realtime'.",
                            "session.type")  # fmt: skip
        for name, now in _BETA.items():
            if name in patch:
                raise WireError("unknown_parameter", f"Unknown parameter: 'session.{name}'. It is now '{now}'.",
                                f"session.{name}")  # fmt: skip
        patch = {key: value for key, value in patch.items() if key not in _KEPT}
        try:
            return msgspec.convert(_merged(msgspec.to_builtins(self), patch), Session)
        except (msgspec.ValidationError, RecursionError) as error:
            raise wire_error(error, "session") from None


def _shown_speed(settings: CallSettings) -> float:
    """The speed, within what the convention allows."""
    return min(max(settings.speed, SLOWEST), FASTEST)


def _replaced(whole: Any, path: list[str], value: Any) -> Any:
    name, *inside = path
    part = _replaced(getattr(whole, name), inside, value) if inside else value
    return msgspec.structs.replace(whole, **{name: part})


_KEPT = {"id", "object", "type", "model", "expires_at", "tracing", "prompt", "truncation", "include"}
"""Fields that an update may contain without effect: they are the server's, or accepted and ignored (as are unknown
fields)."""

_BETA = {
    "modalities": "session.output_modalities",
    "voice": "session.audio.output.voice",
    "input_audio_format": "session.audio.input.format",
    "output_audio_format": "session.audio.output.format",
    "input_audio_transcription": "session.audio.input.transcription",
    "turn_detection": "session.audio.input.turn_detection",
    "max_response_output_tokens": "session.max_output_tokens",
}
"""Field names of the beta convention, which would otherwise be ignored without an error."""

_CLEARED_BY_NULL = {
    "audio.input.transcription",
    "audio.input.transcription.language",
    "audio.input.transcription.prompt",
    "audio.input.turn_detection",
    "audio.input.turn_detection.idle_timeout_ms",
}
"""Fields that null clears; elsewhere null means "not given"."""


def voice_name(value: Any) -> Any:
    """The voice's name: a voice is "name" or {"id": "name"}; anything else is left for validation to refuse."""
    return value["id"] if isinstance(value, dict) and "id" in value else value


def _one_modality(value: Any) -> Any:
    """Audio comes with its transcript, so asking for both is asking for audio."""
    return ["audio"] if value in (["audio", "text"], ["text", "audio"]) else value


_COERCED: dict[str, Callable[[Any], Any]] = {
    VOICE: voice_name,
    "output_modalities": _one_modality,
    "audio.input.noise_reduction": lambda _: None,
}


def _merged(old: dict[str, Any], patch: dict[str, Any], path: str = "") -> dict[str, Any]:
    """`old` with `patch` merged into it, objects key by key unless their `type` changes; lists are replaced. Keys that
    `old` does not have are no fields of ours, and cost nothing: a client may send fifty thousand of them."""
    new = dict(old)
    for key, have in old.items():
        if key not in patch:
            continue
        value = patch[key]
        where = f"{path}.{key}" if path else str(key)
        if value is None and where not in _CLEARED_BY_NULL:
            continue
        if where in _COERCED:
            value = _COERCED[where](value)
        if isinstance(have, dict) and isinstance(value, dict) and value.get("type") in (None, have.get("type")):
            value = _merged(have, value, where)
        new[key] = value
    return new


def _tool_choice_json(choice: str) -> ToolChoice:
    match choice:
        case "auto" | "none" | "required":
            return choice
    return NamedTool(choice)
