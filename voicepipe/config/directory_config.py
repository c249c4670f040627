"""Configuration of a directory: `configs/directory.toml` has every key with its default. And the rules of a whole fleet
besides its agents, which `voicepipe push --with` sends to PoPs and directories."""

from typing import Annotated

from msgspec import Meta
from msgspec.structs import asdict, replace

from voicepipe.agent import Hooks
from voicepipe.base.places import check_place
from voicepipe.base.ranges import Label, Name, Section
from voicepipe.config.fleet_config import BusConfig, TlsConfig
from voicepipe.config.phone_config import (
    KnownTrunk,
    RouteConfig,
    SipEndpointConfig,
    TelephonyConfig,
    TelnyxAccount,
    TwilioAccount,
)
from voicepipe.config.pop_config import Config, HttpConfig, KeyOwner, LogConfig, TenantConfig


class DirectorySection(Section, frozen=True):
    """`[directory]`."""

    id: Name = "directory"
    key: str = ""
    """Path of the Ed25519 private key (PEM) that signs its tokens."""
    keys: tuple[str, ...] = ()
    """Paths of other directories' public keys (PEM): `ek_` keys that they made are accepted here."""
    place: tuple[float, ...] = ()
    """Its place on the globe: latitude and longitude. Callers who do not give theirs are taken to be there."""
    connections: Annotated[int, Meta(ge=10)] = 1000
    """Connections at a time."""
    drain_ms: Annotated[int, Meta(ge=0, le=86_400_000)] = 3_660_000
    """Milliseconds for which calls that it relays may go on once it is being stopped; as `pop.drain_ms`."""
    editions: str = ""
    """Folder for pushed editions: agents, routes and tenants for the whole fleet. Empty: it takes no pushes."""

    known_pops: str = ""
    """File in which it remembers the PoPs that keep records, so that a deletion names each that does not answer. Empty:
    it remembers them for a day, and until it ends."""

    def __post_init__(self) -> None:
        check_place(self.place)


class DirectoryTenant(KeyOwner, frozen=True):
    """A tenant as directories know it: the owner of a key."""

    zone: str = ""
    """The zone that their calls may not leave, such as "eu"; empty: none."""


class DirectoryTrunk(KnownTrunk, frozen=True):
    """A provider, a PBX or an SBC that asks by SIP where to call."""

    place: tuple[float, ...] = ()
    """The place of its media gateway: latitude and longitude. Empty: the directory's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_place(self.place)


class DirectorySipConfig(SipEndpointConfig, frozen=True):
    """SIP at a directory, which redirects calls (302) and takes none."""

    trunks: tuple[DirectoryTrunk, ...] = ()


class DirectoryTwilio(TwilioAccount, frozen=True):
    """Twilio's webhooks at a directory. Each PoP needs the auth token, too: streams go there."""

    place: tuple[float, ...] = ()
    """The place of the Twilio region that processes the numbers' calls: latitude and longitude. Empty: the
    directory's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_place(self.place)


class DirectoryTelnyx(TelnyxAccount, frozen=True):
    """Telnyx's webhooks at a directory. Each PoP needs the keys, too: it answers the calls."""

    place: tuple[float, ...] = ()
    """The place of the number's AnchorSite: latitude and longitude. Empty: the directory's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_place(self.place)


class DirectoryRoute(RouteConfig, frozen=True):
    """A route of phone calls at a directory: their tenant, and the PoPs to which they go. The first that fits
    counts."""

    region: str = ""
    """Calls go to PoPs of this region (`pop.region`) while one of those has room, and otherwise to others. To keep them
    within an area, their tenant has a zone."""


class CanaryConfig(Section, frozen=True):
    """A trial of a version or of one PoP, which gets only a share of the calls. The first that fits counts."""

    share: Annotated[float, Meta(ge=0, le=1)]
    """The share of the calls for which it would do as well as others."""
    version: Label = ""
    """The version as its PoPs have it in `pop.version`, ..."""
    pop: str = ""
    """... or the id of one PoP."""

    def __post_init__(self) -> None:
        if bool(self.version) == bool(self.pop):
            raise ValueError("give either version or pop")


class DirectoryConfig(Section, frozen=True):
    """The whole file of a directory."""

    directory: DirectorySection = DirectorySection()
    log: LogConfig = LogConfig()
    bus: BusConfig = BusConfig()
    tls: TlsConfig = TlsConfig()
    http: HttpConfig = HttpConfig()
    sip: DirectorySipConfig = DirectorySipConfig()
    telephony: TelephonyConfig = TelephonyConfig()
    twilio: DirectoryTwilio = DirectoryTwilio()
    telnyx: DirectoryTelnyx = DirectoryTelnyx()
    tenants: tuple[DirectoryTenant, ...] = ()
    routes: tuple[DirectoryRoute, ...] = ()
    canaries: tuple[CanaryConfig, ...] = ()


class FleetTenant(DirectoryTenant, frozen=True):
    """A tenant in the rules of a fleet: the owner of a key. PoPs ignore `zone`, and directories `hooks`."""

    hooks: Hooks = Hooks()
    """Receivers of webhooks about its calls, where their agent names none."""


class FleetRules(Section, frozen=True):
    """The rules of a whole fleet besides its agents, in one file for PoPs and directories: whose calls it takes, where
    they go, and what is on trial. Where it lacks one of the tables, each host keeps its own; `routes = []` means that
    there are none. Keys are in no file: each host has the variables that it names."""

    tenants: tuple[FleetTenant, ...] | None = None
    routes: tuple[DirectoryRoute, ...] | None = None
    """PoPs ignore `region`."""
    canaries: tuple[CanaryConfig, ...] | None = None
    """For directories."""

    def at_pop(self, config: Config) -> Config:
        """A PoP's configuration with these rules; not checked."""
        own = config.tenants if self.tenants is None else tuple(map(_at_pop, self.tenants))
        return replace(config, tenants=own, routes=config.routes if self.routes is None else self.routes)

    def at_directory(self, config: DirectoryConfig) -> DirectoryConfig:
        """A directory's configuration with these rules; not checked."""
        said = {"tenants": self.tenants, "routes": self.routes, "canaries": self.canaries}
        return replace(config, **{table: rows for table, rows in said.items() if rows is not None})


def _at_pop(tenant: FleetTenant) -> TenantConfig:
    known = asdict(tenant)
    return TenantConfig(**{key: known[key] for key in TenantConfig.__struct_fields__})
