"""Tables of a PoP's configuration, and the whole of them."""

import ipaddress
from typing import Annotated, Literal
from urllib.parse import urlsplit

import regex
from msgspec import Meta
from msgspec.structs import replace

from voicepipe.agent import Hooks
from voicepipe.base.environment import cores
from voicepipe.base.ranges import (
    Label,
    Ms,
    Name,
    Port,
    Price,
    Section,
    Variable,
    Wait,
    check_host,
    check_hosts,
    check_ports,
)
from voicepipe.base.secret_source import SecretPair, check_pairs
from voicepipe.config.engine_config import (
    CoquiConfig,
    DelaysConfig,
    EnginesConfig,
    EspeakConfig,
    KokoroConfig,
    NemotronConfig,
    NeuttsConfig,
    OpenAiConfig,
    ScriptedConfig,
    VllmConfig,
    WhisperConfig,
)
from voicepipe.config.fleet_config import BusConfig, FleetConfig, TlsConfig
from voicepipe.config.phone_config import RouteConfig, SipConfig, TelephonyConfig, TelnyxConfig, TwilioConfig
from voicepipe.turn.endpoint import EndpointConfig
from voicepipe.turn.turn_state import TurnConfig
from voicepipe.turn.vad import VadConfig

TRACES_PATH = "/v1/traces"
"""OTLP's path below a collector's address."""
ONE_PROCESS = 60
"""Calls that one process was measured to hold where it only moves sound."""
HEARD_BY_A_CORE = 2
"""Calls that a core can recognise by Whisper tiny.en, and answer. With a larger model it can do fewer."""
LONGEST = 2000
"""Characters of the longest text that is kept."""


class WebRtcConfig(Section, frozen=True):
    """WebRTC calls at a PoP."""

    addresses: tuple[str, ...] = ()
    """Addresses of this machine on which media are received (UDP); empty: those that `http.host` stands for."""
    public_address: str = ""
    """The address of this host behind a 1:1 NAT, as callers see it; empty: there is no such NAT."""
    first_port: Port = 0
    last_port: Port = 0
    """UDP ports for media, one a call and address; 0: any."""
    connect_ms: Wait = 15_000
    """Milliseconds after which a caller who has not connected is given up."""
    turn_urls: tuple[str, ...] = ()
    """URLs of a coturn that shares a secret with us (`use-auth-secret`), for callers behind firewalls."""
    turn_secret_env: Variable = ""
    """The environment variable that holds the secret, ..."""
    turn_secret_file: str = ""
    """... or the file that does."""
    turn_secret = SecretPair()
    turn_ttl_s: Annotated[int, Meta(ge=60, le=86_400)] = 3600
    """Seconds for which the credentials that we give a caller are valid."""

    def __post_init__(self) -> None:
        check_pairs(self)
        if bool(self.turn_urls) != bool(self.turn_secret):
            raise ValueError(
                "turn_urls and turn_secret_env go together; give both for TURN, or none (turn_secret_file does as well)"
            )
        for url in self.turn_urls:
            if not url.startswith(("turn:", "turns:", "stun:")):
                raise ValueError(f"turn_urls: {url!r} is none; give one such as turn:turn.example.com:3478")
        for address in self.addresses:
            check_hosts(addresses=address)
        check_hosts(public_address=self.public_address)
        check_ports(self.first_port, self.last_port)


class RedactionConfig(Section, frozen=True):
    """`[redaction]`: what is masked in calls before anything of them is kept."""

    cards: bool = True
    """Card numbers, in digits and in words, over several turns; with them expiry dates and security codes."""
    keys: bool = True
    """Keys that callers press on their telephones, and three or more that the agent presses."""
    patterns: tuple[str, ...] = ()
    """The operator's regular expressions; each match is taken out. A text that keeps one busy for too long is taken out
    whole."""
    transcripts: bool = True
    """False: no words are kept, nor arguments and results of tools."""

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            try:
                regex.compile(pattern)
            except (regex.error, OverflowError, RecursionError) as error:
                raise ValueError(f"patterns: {pattern!r} is no regular expression: {error}") from None


USUAL = RedactionConfig()
"""The default where nothing else is configured."""


class RecordsConfig(RedactionConfig, frozen=True):
    """The records of calls."""

    folder: str = ""
    """Folder in which a PoP keeps its records, in a file of its own (POP.db); it is created if it does not exist.
    Empty: none are kept."""
    keep_days: Annotated[int, Meta(ge=1, le=36_500)] = 30
    """Days after which a record is deleted."""
    lines: str = ""
    """A file to which each record is appended as a line of JSON when its call ends; "-": standard output."""


class TracesConfig(Section, frozen=True):
    """The traces of calls."""

    endpoint: str = ""
    """Base address of a collector that takes OTLP over HTTP, as "http://127.0.0.1:4318". Empty: there are no traces."""
    sample: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """Share of the calls that are traced. A call that belongs to a trace already (traceparent) is traced if that is."""
    headers_env: Variable = ""
    """Names the environment variable with headers for the collector, written as for OTEL_EXPORTER_OTLP_HEADERS, ..."""
    headers_file: str = ""
    """... or the file with them."""
    headers = SecretPair()

    def __post_init__(self) -> None:
        check_pairs(self)
        parts = urlsplit(self.endpoint)
        if self.endpoint and not (parts.scheme in ("http", "https") and parts.hostname):
            raise ValueError(f"endpoint: {self.endpoint!r} is none; give one such as http://127.0.0.1:4318")
        if parts.path.rstrip("/").endswith(TRACES_PATH) or parts.query:
            raise ValueError(
                f"endpoint: {self.endpoint!r} is not the base address; leave out what follows it: {TRACES_PATH}"
            )
        if self.headers and not self.endpoint:
            key = self.headers.key_at("headers")
            raise ValueError(f"{key}: there is no endpoint that would get them; give one, or leave this out")


class PopConfig(Section, frozen=True):
    """The PoP itself."""

    id: Name = "local"
    region: Name = "local"
    version: Label = ""
    """The operator's label of what runs here, also for directories that give a version only a share of the calls.
    Empty: voicepipe's own version."""
    slots: Annotated[int, Meta(ge=0)] = 0
    """Calls at a time; one more is refused with 503. 0: as many as this machine can recognise (`with_slots`)."""
    budget_ms: Annotated[int, Meta(ge=160, le=600_000)] = 300
    """Turn latency: a call is also refused if with one more the slowest turns would be answered later
    (`pop/admission.py`)."""
    loop_lag_ms: Annotated[int, Meta(ge=1, le=60_000)] = 20
    """Lag of the event loop: calls are also refused while it is later than this (p99 of the last 5 s), since all calls
    wait for it."""
    agents: str = "agents"
    """Directory of agent files, relative to the file that names it."""
    default_agent: str = "front-desk"
    drain_ms: Annotated[int, Meta(ge=0, le=86_400_000)] = 3_660_000
    """Milliseconds for which live calls may go on once the PoP takes no new ones: it is being stopped, or drained. The
    default is a minute more than the longest call (`limits.call_ms`), so that a rolling upgrade cuts none."""
    price_per_hour: Price = 0.0
    """Price of the host, in the operator's currency, the same for all PoPs of a fleet; of its part where several PoPs
    share a host. The cost of calls follows from it (`sizing/price.py`); it changes no choice. 0: unknown."""


class HttpConfig(Section, frozen=True):
    """The HTTP server of a PoP."""

    host: str = "127.0.0.1"
    port: Port = 8080
    cert: str = ""
    key: str = ""
    origins: tuple[str, ...] = ()
    """Browser origins that may call from other sites (CORS); "*" for all."""
    operator_key_env: Variable = ""
    """Names the environment variable with the key to the dashboard of all tenants; tenants see their own calls with
    their keys. Or ..."""
    operator_key_file: str = ""
    """... the file with it."""
    operator_key = SecretPair()
    metrics_key_env: Variable = ""
    """Names the environment variable with the key to /metrics, ..."""
    metrics_key_file: str = ""
    """... or the file with it. Without it a server without tenants shows them to programs of its own machine, and one
    with tenants to the operator only."""
    metrics_key = SecretPair()
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    """IP addresses of proxies: their `X-Forwarded-For` is trusted, and requests count by it and not by the proxies."""

    def __post_init__(self) -> None:
        check_pairs(self)
        check_host("host", self.host)
        if bool(self.cert) != bool(self.key):
            raise ValueError("cert and key go together; give both for TLS, or none")
        for address in self.proxies:
            try:
                ipaddress.ip_address(address)
            except ValueError:
                raise ValueError(f"proxies: {address!r} is no IP address; give one such as 192.0.2.7") from None


class LogConfig(Section, frozen=True):
    """The log of a PoP, or of a directory: on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Events of this level or above are logged; of libraries, warnings and above."""
    format: Literal["text", "json"] = "text"
    """Lines for people, or one JSON object a line."""


class LimitsConfig(Section, frozen=True):
    """Limits of clients and calls."""

    message_bytes: Annotated[int, Meta(ge=1024)] = 16 * 1024 * 1024
    """Bytes of one WebSocket message. The Realtime convention allows 15 MiB of base64 in one append. On a data channel,
    which takes no sound, at most 256 KiB of it."""
    call_ms: Annotated[int, Meta(ge=1000)] = 3_600_000
    idle_ms: Annotated[int, Meta(ge=1000)] = 300_000
    """Milliseconds without any message from the client."""
    event_bytes: Annotated[int, Meta(ge=1024)] = 512 * 1024
    """Bytes of one message that is no appended audio; of the body of `client_secrets`, and of the session in a call's
    form."""
    session_bytes: Annotated[int, Meta(ge=1024)] = 128 * 1024
    """Bytes of the instructions and tools of a session, or of one response."""
    item_bytes: Annotated[int, Meta(ge=1024)] = 64 * 1024
    """Bytes of one entry of a conversation."""
    conversation_bytes: Annotated[int, Meta(ge=1024)] = 1024 * 1024
    """Bytes of all entries that the client sees."""
    items: Annotated[int, Meta(ge=1)] = 2000
    client_percent: Annotated[int, Meta(ge=2, le=100)] = 10
    """Percent of the event loop's time that the messages of a call's clients may take in the long run; messages beyond
    it are carried out later. A key's HTTP requests (`client_secrets`, calls) have a share of their own; above it they
    get 429."""
    unread_bytes: Annotated[int, Meta(ge=65_536)] = 8 * 1024 * 1024
    """Bytes that were sent and not taken by the client; a client that reads so slowly is disconnected."""


class KeyOwner(Section, frozen=True):
    """The owner of a key to a server. The key is read from the environment variable `key_env`, or from the file
    `key_file`, and is never in the configuration."""

    name: str
    key_env: Variable = ""
    key_file: str = ""
    key = SecretPair()
    agents: tuple[str, ...] = ()
    """Names of agents; empty: all."""
    slots: Annotated[int, Meta(ge=1)] | None = None
    """Its calls at a time, within the PoP's; None: as many as the PoP has."""

    def __post_init__(self) -> None:
        check_pairs(self, "key")


class TenantConfig(KeyOwner, frozen=True):
    """A tenant of a PoP."""

    hooks: Hooks = Hooks()
    """Receivers of webhooks about its calls, where their agent names none."""


class LadderConfig(Section, frozen=True):
    """Times after which a late reply is handled, step by step. Counted from commit; waiting for the caller never
    triggers it. 0 turns a step off."""

    words_ms: Ms = 1400
    """Not counted from commit but from when the caller has fallen silent: a recogniser without words by then, and after
    four times its usual time, hangs; never later than `fallback_ms`. The caller is asked again."""
    first_phrase: Literal["clause", "short"] = "clause"
    """No step. "short": the first phrase of each reply is cut after 2 to 5 words, whether there is time or not. For a
    voice that makes a phrase as a whole, as Kokoro does: a short one sounds sooner. The price: a sentence's melody
    breaks more often."""
    short_phrase_ms: Ms = 80
    """The first phrase is cut like that if it is late. Nothing is left to do where `first_phrase` is "short"."""
    acknowledge_ms: Ms = 700
    fallback_ms: Ms = 5000
    stall_ms: Ms = 5000
    """Not counted from commit but from the last sound or text of an answer that has begun: the model or the voice
    stalled."""


class Manifest(Section, frozen=True):
    """A file of pops/: the settings of one PoP that differ from the configuration which several share."""

    pop: PopConfig = PopConfig()
    http: HttpConfig = HttpConfig()
    webrtc: WebRtcConfig = WebRtcConfig()
    sip: SipConfig = SipConfig()
    telephony: TelephonyConfig = TelephonyConfig()
    twilio: TwilioConfig = TwilioConfig()
    telnyx: TelnyxConfig = TelnyxConfig()
    fleet: FleetConfig = FleetConfig()
    bus: BusConfig = BusConfig()
    tls: TlsConfig = TlsConfig()
    records: RecordsConfig = RecordsConfig()
    traces: TracesConfig = TracesConfig()
    log: LogConfig = LogConfig()
    tenants: tuple[TenantConfig, ...] = ()
    routes: tuple[RouteConfig, ...] = ()
    ladder: LadderConfig = LadderConfig()
    """Hosts differ in how long their engines take."""


class Config(Manifest, frozen=True):
    """The whole configuration of a PoP: the tables of a manifest, and those that PoPs share."""

    limits: LimitsConfig = LimitsConfig()
    vad: VadConfig = VadConfig()
    endpoint: EndpointConfig = EndpointConfig()
    turn: TurnConfig = TurnConfig()
    engines: EnginesConfig = EnginesConfig()
    whisper: WhisperConfig = WhisperConfig()
    nemotron: NemotronConfig = NemotronConfig()
    vllm: VllmConfig = VllmConfig()
    openai: OpenAiConfig = OpenAiConfig()
    espeak: EspeakConfig = EspeakConfig()
    kokoro: KokoroConfig = KokoroConfig()
    neutts: NeuttsConfig = NeuttsConfig()
    coqui: CoquiConfig = CoquiConfig()
    scripted: ScriptedConfig = ScriptedConfig()
    delays: DelaysConfig = DelaysConfig()

    @property
    def is_shared(self) -> bool:
        """Whether tenants share the PoP: its own, or those of a directory whose tokens it takes."""
        return len({tenant.name for tenant in self.tenants}) > 1 or bool(self.fleet.keys)


def with_slots(config: Config) -> Config:
    """`config` with a number in `pop.slots`, where that is 0 ("`pop.slots` is by default what the
    machine can hear", `pop/README.md`)."""
    if config.pop.slots:
        return config
    whisper = config.whisper
    hears_here = config.engines.asr == "whisper" and not whisper.device.startswith("cuda")
    hearing = min(whisper.threads or cores(), cores())
    slots = HEARD_BY_A_CORE * hearing if hears_here else ONE_PROCESS
    return replace(config, pop=replace(config.pop, slots=slots))
