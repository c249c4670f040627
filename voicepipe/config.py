"""Configuration: frozen structs, one TOML loader. The environment is read here and nowhere else.

`configs/default.toml` names every key with its default and a comment; a test keeps the two equal.
"""

import ipaddress
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from voicepipe import toml_file
from voicepipe.agent import Agent
from voicepipe.errors import ConfigError
from voicepipe.turn.endpoint import EndpointConfig

log = logging.getLogger(__name__)

Ms = Annotated[int, Meta(ge=0, le=600_000)]
Port = Annotated[int, Meta(ge=0, le=65_535)]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every table of the configuration."""


class PopConfig(Section):
    id: str = "local"
    region: str = "local"
    slots: Annotated[int, Meta(ge=1)] = 16
    """Calls at a time; one more is refused with 503."""
    budget_ms: Ms = 300
    agents: str = "agents"
    """Directory of agent files, relative to the file that names it."""
    default_agent: str = "front-desk"


class HttpConfig(Section):
    host: str = "127.0.0.1"
    port: Port = 8080
    cert: str = ""
    key: str = ""
    origins: tuple[str, ...] = ()
    """Browser origins that may call from other sites (CORS); "*" for all."""


class LimitsConfig(Section):
    message_bytes: Annotated[int, Meta(ge=1024)] = 16 * 1024 * 1024
    """One WebSocket message. The Realtime convention allows 15 MiB of base64 in one append."""
    call_ms: Annotated[int, Meta(ge=1000)] = 3_600_000
    idle_ms: Annotated[int, Meta(ge=1000)] = 300_000
    """Without any message from the client."""
    items: Annotated[int, Meta(ge=1)] = 2000
    unread_bytes: Annotated[int, Meta(ge=65_536)] = 8 * 1024 * 1024
    """Sent and not taken by the client; a client that reads so slowly is hung up."""


class TenantConfig(Section):
    """A key's owner. Keys are read from the environment variable `key_env`, never from the file."""

    name: str
    key_env: str
    agents: tuple[str, ...] = ()
    """Empty: all."""
    slots: int | None = None


class VadConfig(Section):
    start_probability: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    stop_probability: Annotated[float, Meta(gt=0, lt=1)] = 0.35
    start_ms: Ms = 60
    """Voice shorter than this is a click, not a beginning."""
    prefix_ms: Ms = 300
    """Sound before the first voiced sample that the recogniser also gets."""


class TurnConfig(Section):
    prepare_ms: Ms = 70
    """Silence after which the reply is prepared speculatively."""
    duck_ms: Ms = 60
    pause_ms: Ms = 200
    cut_ms: Ms = 600
    duck_db: float = -15.0
    resume_ms: Ms = 300
    """Silence after which a reply that was not cut goes on."""
    reopen_ms: Ms = 400
    """Voice within this time of a commit, or before the reply was audible, reopens the turn."""
    echo_db: float = -12.0
    """Caller sound that correlates with recent output and is weaker than this against it is our own echo."""


class LadderConfig(Section):
    """Counted from commit; waiting for the caller never triggers it. 0 turns a rung off."""

    short_phrase_ms: Ms = 80
    acknowledge_ms: Ms = 700
    fallback_ms: Ms = 5000


class EnginesConfig(Section):
    vad: Literal["silero", "scripted"] = "silero"
    asr: Literal["sphinx", "scripted"] = "sphinx"
    llm: Literal["frontdesk", "scripted"] = "frontdesk"
    tts: Literal["espeak", "scripted"] = "espeak"


class SphinxConfig(Section):
    processes: Annotated[int, Meta(ge=0)] = 0
    """Child processes; 0: one a core."""
    decoders: Annotated[int, Meta(ge=0)] = 0
    """Utterances recognised at a time; 0: one a slot of the PoP, at most 8. 95 MB each."""


class EspeakConfig(Section):
    voice: str = "en-us"
    words_per_minute: Annotated[int, Meta(ge=80, le=450)] = 165


class DelaysConfig(Section):
    """Added to each engine's own time: what GPU engines would cost. For measurements and tests."""

    asr_ms: Ms = 0
    first_token_ms: Ms = 0
    token_ms: Ms = 0
    tts_ms: Ms = 0


class Config(Section):
    """The whole file."""

    pop: PopConfig = PopConfig()
    http: HttpConfig = HttpConfig()
    limits: LimitsConfig = LimitsConfig()
    tenants: tuple[TenantConfig, ...] = ()
    vad: VadConfig = VadConfig()
    endpoint: EndpointConfig = EndpointConfig()
    turn: TurnConfig = TurnConfig()
    ladder: LadderConfig = LadderConfig()
    engines: EnginesConfig = EnginesConfig()
    sphinx: SphinxConfig = SphinxConfig()
    espeak: EspeakConfig = EspeakConfig()
    delays: DelaysConfig = DelaysConfig()


def parse(data: dict[str, Any]) -> Config:
    return msgspec.convert(data, Config)
