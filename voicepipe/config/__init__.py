"""Configuration: frozen structs, one TOML loader. Secrets are in the environment (`environment.py`).

`configs/default.toml` names every key with its default and a comment; a test keeps the two equal.
"""

import ipaddress
import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from voicepipe.agent import Hooks
from voicepipe.config import toml_file
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
from voicepipe.config.file_kind import check_kind, located
from voicepipe.config.fleet_config import BusConfig, FleetConfig
from voicepipe.config.phone_config import (
    KnownTrunk,
    RouteConfig,
    SipConfig,
    TelephonyConfig,
    TelnyxConfig,
    TwilioConfig,
    takes_phones,
)
from voicepipe.config.records_config import RecordsConfig
from voicepipe.config.traces_config import TracesConfig
from voicepipe.config.webrtc_config import WebRtcConfig
from voicepipe.errors import ConfigError
from voicepipe.ranges import Label, Ms, Name, Port, Price, Section, Variable, check_host
from voicepipe.turn.endpoint import EndpointConfig
from voicepipe.turn.known import TurnConfig
from voicepipe.turn.vad import VadConfig

PATHS = (
    ("pop", "agents"),
    ("http", "cert"),
    ("http", "key"),
    ("fleet", "keys"),
    ("bus", "credentials"),
)
"""Tables and keys that name files."""

MODELS = (
    ("whisper", "model"),
    ("nemotron", "model"),
    ("vllm", "model"),
    ("kokoro", "model"),
    ("kokoro", "voices"),
    ("neutts", "model"),
    ("neutts", "codec"),
    ("coqui", "model"),
    ("coqui", "python"),
    ("endpoint", "model"),
)
"""Tables and keys that name files which may come later, or be elsewhere: a model is fetched, an interpreter installed.
A name that is no path from here ("org/name" on the hub, "python3") stays as it is."""


MADE = (("records", "folder"), ("records", "lines"), ("fleet", "editions"))
"""Tables and keys that name files which are made; "-" is standard output."""


class PopConfig(Section, frozen=True):
    id: Name = "local"
    region: Name = "local"
    version: Label = ""
    """Of what runs here, for operators and for directories that give a version only a share of the calls. Empty:
    voicepipe's own."""
    slots: Annotated[int, Meta(ge=0)] = 0
    """Calls at a time; one more is refused with 503. 0: as many as this machine can hear (`slots.with_slots`)."""
    budget_ms: Annotated[int, Meta(ge=160, le=600_000)] = 300
    """A call is refused, too, if with one more the slowest turns would be answered later (`admission.py`)."""
    loop_lag_ms: Annotated[int, Meta(ge=1, le=60_000)] = 20
    """And while the event loop is so much later than what is due (p99 of the last 5 s): all calls wait for it."""
    agents: str = "agents"
    """Directory of agent files, relative to the file that names it."""
    default_agent: str = "front-desk"
    drain_ms: Annotated[int, Meta(ge=0, le=86_400_000)] = 3_660_000
    """How long live calls may go on once the PoP takes no new ones: it is being stopped, or drained. The default is a
    minute more than the longest call (`limits.call_ms`), so that a rolling upgrade cuts none."""
    price_per_hour: Price = 0.0
    """Of the host, in the operator's currency, the same for all PoPs of a fleet; of its part where several PoPs share a
    host. Calls cost by it (`sizing/price.py`); it changes no choice. 0: nobody knows."""


class HttpConfig(Section, frozen=True):
    host: str = "127.0.0.1"
    port: Port = 8080
    cert: str = ""
    key: str = ""
    origins: tuple[str, ...] = ()
    """Browser origins that may call from other sites (CORS); "*" for all."""
    operator_key_env: Variable = ""
    """Names the environment variable with the key to the dashboard of all tenants; they see their own with theirs."""
    metrics_key_env: Variable = ""
    """Names the environment variable with the key to /metrics. Without it a server that has no tenants shows them to
    programs of its own machine, and one that has some to the operator alone."""
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    """IP addresses of proxies: their `X-Forwarded-For` is believed, and requests count by it and not by them."""

    def __post_init__(self) -> None:
        check_host("host", self.host)
        if bool(self.cert) != bool(self.key):
            raise ValueError("cert and key go together; give both for TLS, or none")
        for address in self.proxies:
            try:
                ipaddress.ip_address(address)
            except ValueError:
                raise ValueError(f"proxies: {address!r} is no IP address; give one such as 192.0.2.7") from None


class LimitsConfig(Section, frozen=True):
    message_bytes: Annotated[int, Meta(ge=1024)] = 16 * 1024 * 1024
    """One WebSocket message. The Realtime convention allows 15 MiB of base64 in one append. On a data channel, which
    takes no sound, at most 256 KiB of it."""
    call_ms: Annotated[int, Meta(ge=1000)] = 3_600_000
    idle_ms: Annotated[int, Meta(ge=1000)] = 300_000
    """Without any message from the client."""
    event_bytes: Annotated[int, Meta(ge=1024)] = 512 * 1024
    """One message that is no appended audio; the body of `client_secrets`, and the session in a call's form."""
    session_bytes: Annotated[int, Meta(ge=1024)] = 128 * 1024
    """The instructions and tools of a session, or of one response."""
    item_bytes: Annotated[int, Meta(ge=1024)] = 64 * 1024
    """One entry of a conversation."""
    conversation_bytes: Annotated[int, Meta(ge=1024)] = 1024 * 1024
    """All of them that the client sees."""
    items: Annotated[int, Meta(ge=1)] = 2000
    client_percent: Annotated[int, Meta(ge=2, le=100)] = 10
    """Of the event loop's time that the messages of a call's clients may take for long; what comes faster is carried
    out later. A key's HTTP requests (`client_secrets`, calls) have a share of their own; above it they get 429."""
    unread_bytes: Annotated[int, Meta(ge=65_536)] = 8 * 1024 * 1024
    """Sent and not taken by the client; a client that reads so slowly is hung up."""


class KeyOwner(Section, frozen=True):
    """Whose key opens a server. Keys are read from the environment variable `key_env`, never from the file."""

    name: str
    key_env: Annotated[Variable, Meta(min_length=1)]
    agents: tuple[str, ...] = ()
    """Empty: all."""
    slots: Annotated[int, Meta(ge=1)] | None = None
    """Its calls at a time, within the PoP's; none: as many as the PoP has."""


class TenantConfig(KeyOwner, frozen=True):
    """A PoP's."""

    hooks: Hooks = Hooks()
    """Who is told of its calls, where their agent names nobody."""


class LadderConfig(Section, frozen=True):
    """Counted from commit; waiting for the caller never triggers it. 0 turns a rung off."""

    words_ms: Ms = 1400
    """Not counted from commit but from when the caller has fallen silent: a recogniser that has not told the words by
    then, and by four times what it mostly takes, hangs; never later than `fallback_ms`. The caller is asked again."""
    first_phrase: Literal["clause", "short"] = "clause"
    """No rung. "short": the first phrase of each reply is cut after 2 to 5 words, whether there is time or not. For a
    voice that makes a phrase as a whole, as Kokoro does: a short one sounds sooner. The price: a sentence's melody
    breaks more often."""
    short_phrase_ms: Ms = 80
    """The first phrase is cut like that if it is late. Nothing is left to do where `first_phrase` is "short"."""
    acknowledge_ms: Ms = 700
    fallback_ms: Ms = 5000
    stall_ms: Ms = 5000
    """Not counted from commit but from the last piece of an answer that has begun: the model or the voice stalled."""


class Config(Section, frozen=True):
    """The whole file."""

    pop: PopConfig = PopConfig()
    http: HttpConfig = HttpConfig()
    webrtc: WebRtcConfig = WebRtcConfig()
    sip: SipConfig = SipConfig()
    telephony: TelephonyConfig = TelephonyConfig()
    twilio: TwilioConfig = TwilioConfig()
    telnyx: TelnyxConfig = TelnyxConfig()
    fleet: FleetConfig = FleetConfig()
    bus: BusConfig = BusConfig()
    traces: TracesConfig = TracesConfig()
    limits: LimitsConfig = LimitsConfig()
    records: RecordsConfig = RecordsConfig()
    tenants: tuple[TenantConfig, ...] = ()
    routes: tuple[RouteConfig, ...] = ()
    vad: VadConfig = VadConfig()
    endpoint: EndpointConfig = EndpointConfig()
    turn: TurnConfig = TurnConfig()
    ladder: LadderConfig = LadderConfig()
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
        return len(self.tenants) > 1 or bool(self.fleet.keys)


class Manifest(Section, frozen=True):
    """One file of pops/: what makes this PoP different from the others that run the same configuration."""

    pop: PopConfig = PopConfig()
    http: HttpConfig = HttpConfig()
    webrtc: WebRtcConfig = WebRtcConfig()
    sip: SipConfig = SipConfig()
    telephony: TelephonyConfig = TelephonyConfig()
    twilio: TwilioConfig = TwilioConfig()
    telnyx: TelnyxConfig = TelnyxConfig()
    fleet: FleetConfig = FleetConfig()
    bus: BusConfig = BusConfig()
    records: RecordsConfig = RecordsConfig()
    traces: TracesConfig = TracesConfig()
    tenants: tuple[TenantConfig, ...] = ()
    routes: tuple[RouteConfig, ...] = ()
    ladder: LadderConfig = LadderConfig()
    """Hosts differ in how long their engines take."""


RISING = (
    *(("endpoint", (least, "longest_ms")) for least in ("sure_ms", "answer_ms", "yes_ms")),
    ("vad", ("stop_probability", "start_probability")),
    ("vad", ("telephone_stop_probability", "start_probability")),
    ("turn", ("guess_ms", "prepare_ms")),
    ("turn", ("pause_ms", "cut_ms")),
    ("ladder", ("acknowledge_ms", "fallback_ms")),
)
"""Keys of a table of which none may be more than the next one. A rung of the ladder that is 0 is turned off."""


def parse(data: dict[str, Any], source: object = "configuration") -> Config:
    """Tables as TOML gives them, checked. Raises ConfigError; `source` names them in its text."""
    return toml_file.convert(data, Config, source)


def load(config_file: Path | None = None, pop_file: Path | None = None) -> Config:
    """The built-in defaults, overridden by `config_file`, overridden by the PoP's manifest.

    Paths in the result are absolute. Raises ConfigError with one line "FILE: key.path: what is wrong" for each problem.
    """
    tables: dict[str, Any] = {}
    for file, shape in ((config_file, Config), (pop_file, Manifest)):
        if file:
            tables = _over(tables, _checked(file, shape))
    tables = _over({"pop": {"agents": str(data_directory() / "agents")}}, tables)
    # Each file was checked alone; what can still be wrong is how they go together.
    config = parse(tables, " with ".join(str(file) for file in (config_file, pop_file) if file))
    try:
        check_together(config)
    except ConfigError as error:
        raise located(error, config_file, pop_file) from None
    return config


def check_tenants(tenants: Iterable[KeyOwner]) -> None:
    """Raises ConfigError: nobody could tell two of them apart. The same tenant may have several keys."""
    owners: dict[str, str] = {}
    for index, tenant in enumerate(tenants):
        if tenant.key_env in owners:
            raise ConfigError(f"tenants[{index}].key_env: {tenant.key_env} is the key of {owners[tenant.key_env]} "
                              "already; name another variable")  # fmt: skip
        owners[tenant.key_env] = tenant.name


def check_together(config: Config) -> None:
    """Raises ConfigError: tables that are right alone do not go together."""
    for table, keys in RISING:
        its = getattr(config, table)
        for less, more in pairwise(keys):
            low, high = getattr(its, less), getattr(its, more)
            if low > high and not (table == "ladder" and high == 0):
                raise ConfigError(f"{table}.{less}: cannot be {low}, more than {table}.{more}, which is {high}")
    check_tenants(config.tenants)
    _check_records(config)
    if config.telnyx.public_key and not config.telephony.public_url:
        raise ConfigError(
            "telephony.public_url: Telnyx is told where to stream calls to; say how it reaches this server"
        )
    if config.endpoint.ask_llm and config.engines.llm != "vllm":
        raise ConfigError(f"endpoint.ask_llm: {config.engines.llm} cannot tell; set engines.llm to vllm")
    if config.bus.servers and not (config.fleet.keys and config.fleet.url):
        raise ConfigError(
            "fleet: directories will hear of this PoP by [bus]; say how callers reach it (url) and whose "
            "tokens it takes (keys)"
        )
    if config.fleet.sip and not config.sip.port:
        raise ConfigError(
            "fleet.sip: telephones reach nothing there while sip.port = 0; set that, to 5060 for instance"
        )
    phones = takes_phones(config.sip, config.twilio, config.telnyx)
    check_routes(config.routes, config.tenants, config.sip.trunks, phones)


def check_routes(
    routes: Sequence[RouteConfig], tenants: Sequence[KeyOwner], trunks: Sequence[KnownTrunk], phones: bool
) -> None:
    """`phones`: phone calls come in. Raises ConfigError: a route names what there is not, or nobody says whose calls
    are meant."""
    names, known = [tenant.name for tenant in tenants], [trunk.name for trunk in trunks]
    if len(names) > 1 and not routes and phones:
        raise ConfigError(f"routes: say whose phone calls are in [[routes]]; tenants: {', '.join(names)}")
    for index, route in enumerate(routes):
        if route.trunk and route.trunk not in known:
            allowed = ", ".join(known) or "none, since no [[sip.trunks]] are configured"
            raise ConfigError(f"routes[{index}].trunk: there is no trunk {route.trunk}; allowed: {allowed}")
        if route.tenant and route.tenant not in names:
            allowed = ", ".join(names) or "none, since no [[tenants]] are configured"
            raise ConfigError(f"routes[{index}].tenant: there is no tenant {route.tenant}; allowed: {allowed}")
        if not route.tenant and len(names) > 1:
            raise ConfigError(f"routes[{index}].tenant: say whose calls these are; allowed: {', '.join(names)}")


def _check_records(config: Config) -> None:
    """Raises ConfigError: something is to be done with records, and none are kept."""
    if config.records.folder:
        return
    wanted = ["records.lines"] if config.records.lines else []
    wanted += [f"tenants[{index}].hooks" for index, tenant in enumerate(config.tenants) if tenant.hooks.after_call]
    for key in wanted:
        raise ConfigError(f"{key}: needs records of calls; say where they are kept (records.folder)")


def data_directory() -> Path:
    """The shipped `configs/`: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_configs"
    return installed if installed.is_dir() else package.parent / "configs"


def _checked(file: Path, shape: type[Section]) -> dict[str, Any]:
    """The file's tables, valid on their own, with its relative paths resolved against its own place."""
    tables = toml_file.tables(file)
    check_kind(file, tables, "configuration")
    allowed = shape.__struct_fields__
    for key in tables:
        if key in Config.__struct_fields__ and key not in allowed:
            raise ConfigError(f"{file}: {key}: is not for a PoP's manifest; put it into the configuration (--config); "
                              f"allowed: {', '.join(allowed)}")  # fmt: skip
    toml_file.convert(tables, shape, file)
    locate(tables, PATHS, file)
    place_made(tables, MADE, file)
    for voice in tables.get("neutts", {}).get("voices", {}).values():
        place_made({"voice": voice}, (("voice", "file"),), file)
    for table, key in MODELS:
        if name := tables.get(table, {}).get(key):
            path = file.resolve().parent / Path(name).expanduser()
            if name.startswith((".", "/", "~")) or path.exists():
                tables[table][key] = os.path.normpath(path)
    return tables


def locate(tables: dict[str, Any], paths: Iterable[tuple[str, str]], file: Path) -> None:
    """Make the paths absolute that these keys name, one or several each. Raises ConfigError: there is none of them."""
    for table, key in paths:
        if named := tables.get(table, {}).get(key):
            found = [_existing(file, f"{table}.{key}", name) for name in ([named] if isinstance(named, str) else named)]
            tables[table][key] = found[0] if isinstance(named, str) else found


def place_made(tables: dict[str, Any], paths: Iterable[tuple[str, str]], file: Path) -> None:
    """Make the paths absolute that these keys name; what they lead to is made when it is needed."""
    for table, key in paths:
        if (name := tables.get(table, {}).get(key)) and name != "-":
            tables[table][key] = os.path.normpath(file.resolve().parent / Path(name).expanduser())


def _existing(file: Path, key: str, name: str) -> str:
    """The path that `key` of this file names, absolute. Raises ConfigError: there is nothing."""
    path = file.resolve().parent / Path(name).expanduser()
    if not path.exists():
        raise ConfigError(f"{file}: {key}: there is no {path}; paths are relative to this file")
    return str(path)


def _over(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """`lower` with the keys of `upper` laid over it, table by table; a list replaces a list."""
    merged = dict(lower)
    for key, value in upper.items():
        merged[key] = _over(merged[key], value) if isinstance(value, dict) and key in merged else value
    return merged
