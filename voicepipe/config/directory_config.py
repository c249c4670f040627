"""Configuration of a directory: `configs/directory.toml` has every key with its default."""

from typing import Annotated

from msgspec import Meta

from voicepipe.base.places import check_place
from voicepipe.base.ranges import Label, Name, Section
from voicepipe.config.fleet_config import BusConfig
from voicepipe.config.phone_config import (
    KnownTrunk,
    RouteConfig,
    SipDoorConfig,
    TelephonyConfig,
    TelnyxAccount,
    TwilioAccount,
)
from voicepipe.config.pop_config import HttpConfig, KeyOwner


class DirectorySection(Section, frozen=True):
    """`[directory]`."""

    id: Name = "directory"
    key: str = ""
    """Path of the Ed25519 private key (PEM) that signs its tokens."""
    keys: tuple[str, ...] = ()
    """Paths of other directories' public keys (PEM): `ek_` keys that they made are taken here."""
    place: tuple[float, ...] = ()
    """Where it stands: latitude and longitude. Callers are taken to be there who do not say where they are."""
    connections: Annotated[int, Meta(ge=10)] = 1000
    """Open at a time."""
    drain_ms: Annotated[int, Meta(ge=0, le=86_400_000)] = 3_660_000
    """How long calls that it relays may go on once it is being stopped; as `pop.drain_ms`."""
    editions: str = ""
    """Folder for what operators push: agents, routes and tenants for the whole fleet. Empty: it takes no pushes."""

    def __post_init__(self) -> None:
        check_place(self.place)


class DirectoryTenant(KeyOwner, frozen=True):
    """A key's owner."""

    zone: str = ""
    """Their calls may not leave it, such as "eu"; empty: they may go anywhere."""


class DirectoryTrunk(KnownTrunk, frozen=True):
    """A provider, a PBX or an SBC that asks by SIP where to call."""

    place: tuple[float, ...] = ()
    """Where its media gateway stands: latitude and longitude. Empty: where the directory does."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_place(self.place)


class DirectorySipConfig(SipDoorConfig, frozen=True):
    """By SIP a directory answers where to call (302), and takes no calls."""

    trunks: tuple[DirectoryTrunk, ...] = ()


class DirectoryTwilio(TwilioAccount, frozen=True):
    """Webhooks of Twilio's that come to the directory. Each PoP needs the auth token, too: streams go there."""

    place: tuple[float, ...] = ()
    """Of the Twilio region that the numbers' calls are processed in: latitude and longitude. Empty: where the
    directory is."""

    def __post_init__(self) -> None:
        check_place(self.place)


class DirectoryTelnyx(TelnyxAccount, frozen=True):
    """The same of Telnyx's. Each PoP needs the keys, too: it answers the calls."""

    place: tuple[float, ...] = ()
    """Of the number's AnchorSite."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_place(self.place)


class DirectoryRoute(RouteConfig, frozen=True):
    """Whose phone calls these are, and where they go. The first that fits counts."""

    region: str = ""
    """They go to PoPs of this region (`pop.region`) while one of those has room, and otherwise to others. What they
    must not leave is their tenant's zone."""


class CanaryConfig(Section, frozen=True):
    """A version, or one PoP, that is on trial: it gets only a share of the calls. The first that fits counts."""

    share: Annotated[float, Meta(ge=0, le=1)]
    """Of the calls for which it would do as well as others."""
    version: Label = ""
    """As its PoPs have it in `pop.version`, ..."""
    pop: str = ""
    """... or the id of one PoP."""

    def __post_init__(self) -> None:
        if bool(self.version) == bool(self.pop):
            raise ValueError("give either version or pop")


class DirectoryConfig(Section, frozen=True):
    """The whole file."""

    directory: DirectorySection = DirectorySection()
    bus: BusConfig = BusConfig()
    http: HttpConfig = HttpConfig()
    sip: DirectorySipConfig = DirectorySipConfig()
    telephony: TelephonyConfig = TelephonyConfig()
    twilio: DirectoryTwilio = DirectoryTwilio()
    telnyx: DirectoryTelnyx = DirectoryTelnyx()
    tenants: tuple[DirectoryTenant, ...] = ()
    routes: tuple[DirectoryRoute, ...] = ()
    canaries: tuple[CanaryConfig, ...] = ()
