"""Tables of the configuration that concern phones."""

import binascii
import ipaddress
from base64 import b64decode
from typing import Annotated, Literal

from msgspec import Meta

from voicepipe.base.ranges import DIGITS, Ms, Name, Port, Section, Variable, Wait, check_hosts, check_ports, check_url
from voicepipe.base.secret_source import SecretPair, check_pairs

MostCalls = Annotated[int, Meta(ge=1)] | None
"""Calls at a time; None: as many as its tenant may have. A stolen password allows no more than these."""


class KnownUser(Section, frozen=True):
    """A user who may call from anywhere, with a password (digest)."""

    name: Annotated[str, Meta(min_length=1)]
    password_env: Variable = ""
    """The environment variable that holds the password, ..."""
    password_file: str = ""
    """... or the file that does."""
    password = SecretPair()

    def __post_init__(self) -> None:
        check_pairs(self, "password")


class SipUser(KnownUser, frozen=True):
    """A SIP user of a PoP."""

    calls: MostCalls = None


class KnownTrunk(Section, frozen=True):
    """A trunk that may call without a password: a provider, a PBX or an SBC, known by its addresses."""

    name: Name
    addresses: Annotated[tuple[str, ...], Meta(min_length=1)]
    """IPv4 addresses or networks ("198.51.100.0/24") that its signalling comes from."""

    def __post_init__(self) -> None:
        for address in self.addresses:
            try:
                network = ipaddress.IPv4Network(address, strict=False)
            except ValueError:
                raise ValueError(f"addresses: {address!r} is none; give an IPv4 address or network such as "
                                 "198.51.100.0/24") from None  # fmt: skip
            if network.network_address != ipaddress.IPv4Address(address.partition("/")[0]):
                raise ValueError(f"addresses: {address!r} is one address within a network; give {network} for all of "
                                 f"it, or {address.partition('/')[0]}")  # fmt: skip


class SipTrunk(KnownTrunk, frozen=True):
    """A SIP trunk of a PoP."""

    calls: MostCalls = None


class SipEndpointConfig(Section, frozen=True):
    """SIP over UDP, at a PoP or at a directory. Callers are known by address (`trunks`) or password (`users`); without
    both, only this machine may call."""

    port: Port = 0
    """0: no SIP."""
    host: str = ""
    """IPv4 address on which it listens, 0.0.0.0 for all; empty: `http.host`."""
    trunks: tuple[KnownTrunk, ...] = ()
    users: tuple[KnownUser, ...] = ()
    realm: str = "voicepipe"
    """Shown to users who are asked for their password."""

    def __post_init__(self) -> None:
        check_hosts(host="" if self.host == "0.0.0.0" else self.host)
        for kind, names in (("trunks", [one.name for one in self.trunks]), ("users", [one.name for one in self.users])):
            if len(set(names)) < len(names):
                raise ValueError(f"{kind}: a name occurs twice; give each its own")


class SipConfig(SipEndpointConfig, frozen=True):
    """SIP calls at a PoP."""

    trunks: tuple[SipTrunk, ...] = ()
    users: tuple[SipUser, ...] = ()
    public_address: str = ""
    """The address of this host behind a 1:1 NAT, as callers see it; empty: there is no such NAT."""
    first_port: Port = 0
    last_port: Port = 0
    """UDP ports for media, two a call; 0: any."""
    codecs: tuple[Literal["opus", "g722", "pcmu", "pcma"], ...] = ()
    """In our order of preference; empty: all, in the caller's."""
    srtp: Literal["optional", "required"] = "optional"
    """Encrypted sound (SDES, whose keys travel in the signalling: let that go through TLS)."""
    ring_ms: Ms = 0
    """Milliseconds for which a telephone rings before it is answered."""
    silent_ms: Wait = 30_000
    """Milliseconds without a packet after which a caller is gone, unless the call is on hold."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_hosts(public_address=self.public_address)
        check_ports(self.first_port, self.last_port)


class TelephonyConfig(Section, frozen=True):
    """Settings that Twilio and Telnyx have in common."""

    public_url: str = ""
    """The address at which the provider reaches this server, "https://voice.example.com"; empty: by the Host header."""

    def __post_init__(self) -> None:
        check_url("public_url", self.public_url, "https://voice.example.com")


class TwilioAccount(Section, frozen=True):
    """`[twilio]`: the secret of an account at Twilio, by which its requests are known."""

    auth_token_env: Variable = ""
    """Names the environment variable with the account's auth token, ..."""
    auth_token_file: str = ""
    """... or the file with it; both empty: Twilio sends no calls."""
    auth_token = SecretPair()

    def __post_init__(self) -> None:
        check_pairs(self)


class TwilioConfig(TwilioAccount, frozen=True):
    """Twilio at a PoP."""

    own_twiml: bool = False
    """Streams of other TwiML than ours are accepted, too. They bring no token: anybody who has seen Twilio's signature
    of a stream, which never changes, can begin one."""


class TelnyxAccount(Section, frozen=True):
    """`[telnyx]`: the keys of an account at Telnyx: its own, which signs, and ours to its API."""

    public_key: str = ""
    """The account's public key, by which its webhooks are checked (Ed25519, base64); empty: Telnyx sends no calls."""
    api_key_env: Variable = ""
    """Names the environment variable with an API key, by which calls are answered, ..."""
    api_key_file: str = ""
    """... or the file with it."""
    api_key = SecretPair()
    api_url: str = "https://api.telnyx.com"

    def __post_init__(self) -> None:
        check_pairs(self)
        check_url("api_url", self.api_url, "https://api.telnyx.com")
        if bool(self.public_key) != bool(self.api_key):
            raise ValueError(
                "public_key and api_key_env go together; give both to be called by Telnyx, or none (api_key_file does "
                "as well)"
            )
        if self.public_key and not _is_key(self.public_key):
            raise ValueError(
                f"public_key: {self.public_key!r} is no Ed25519 key in base64; copy it from Telnyx's portal"
            )


class TelnyxConfig(TelnyxAccount, frozen=True):
    """Telnyx at a PoP."""

    codec: Literal["PCMU", "PCMA", "L16"] = "PCMU"
    """The codec of the stream, both ways. L16 has 16 kHz, the others 8."""
    application_id: Annotated[str, Meta(pattern=DIGITS)] = ""
    """The id of the Call Control application: with it the calls that a run of this PoP left in progress when it died
    are ended at the next start, and otherwise with the first webhook."""


def _is_key(text: str) -> bool:
    """Whether it is base64 of 32 bytes."""
    try:
        return len(b64decode(text, validate=True)) == 32
    except (ValueError, binascii.Error):
        return False


StreamedKind = Literal["twilio", "telnyx"]
"""Providers that stream a call's sound over a WebSocket."""
PhoneKind = Literal["sip"] | StreamedKind
PHONES: tuple[PhoneKind, ...] = ("sip", "twilio", "telnyx")


def takes_phones(sip: SipEndpointConfig, twilio: TwilioAccount, telnyx: TelnyxAccount) -> bool:
    """Whether phone calls come in, by any protocol."""
    return bool(sip.port or twilio.auth_token or telnyx.public_key)


class RouteConfig(Section, frozen=True):
    """A route of phone calls: the agent that answers them, and their tenant. The first that fits counts."""

    called: str = "*"
    """The number or SIP user that was dialled; "*" stands for anything, "+4930*" for all that begin so."""
    domain: str = ""
    """SIP: the host of the address that was dialled; empty: any."""
    trunk: str = ""
    """SIP: the trunk by which the call came; empty: any."""
    kind: Literal["", "sip", "twilio", "telnyx"] = ""
    """The kind of call; empty: any."""
    agent: str = ""
    """Empty: the PoP's default agent."""
    tenant: str = ""
    """The tenant of these calls; may be left out where there is only one tenant, or none."""
