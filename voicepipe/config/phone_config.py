"""Tables of the configuration that concern phones."""

import binascii
import ipaddress
from base64 import b64decode
from typing import Annotated, Literal

from msgspec import Meta

from voicepipe.base.ranges import DIGITS, Ms, Name, Port, Section, Variable, Wait, check_hosts, check_ports, check_url

MostCalls = Annotated[int, Meta(ge=1)] | None
"""At a time; None: as many as its tenant may have. Who steals a password takes no more than these."""


class KnownUser(Section, frozen=True):
    """Who may call from anywhere, with a password (digest)."""

    name: Annotated[str, Meta(min_length=1)]
    password_env: Variable
    """The environment variable that holds the password."""


class SipUser(KnownUser, frozen=True):
    """The same, at a PoP."""

    calls: MostCalls = None


class KnownTrunk(Section, frozen=True):
    """Who may call without a password: a provider, a PBX or an SBC, known by its addresses."""

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
    """The same, at a PoP."""

    calls: MostCalls = None


class SipDoorConfig(Section, frozen=True):
    """SIP over UDP, at a PoP or at a directory. Who may call: `trunks` by address, `users` by password, otherwise
    nobody but this machine."""

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


class SipConfig(SipDoorConfig, frozen=True):
    """Phone calls at a PoP."""

    trunks: tuple[SipTrunk, ...] = ()
    users: tuple[SipUser, ...] = ()
    public_address: str = ""
    """What a 1:1 NAT shows for this host to callers; empty: there is no such NAT."""
    first_port: Port = 0
    last_port: Port = 0
    """UDP ports for media, two a call; 0: any."""
    codecs: tuple[Literal["opus", "g722", "pcmu", "pcma"], ...] = ()
    """In our order of preference; empty: all, in the caller's."""
    srtp: Literal["optional", "required"] = "optional"
    """Encrypted sound (SDES, whose keys travel in the signalling: let that go through TLS)."""
    ring_ms: Ms = 0
    """So long a telephone rings before it is answered."""
    silent_ms: Wait = 30_000
    """A caller from whom no packet comes for so long is gone, unless the call is on hold."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_hosts(public_address=self.public_address)
        check_ports(self.first_port, self.last_port)


class TelephonyConfig(Section, frozen=True):
    """What Twilio and Telnyx have in common."""

    public_url: str = ""
    """How the provider reaches this server, "https://voice.example.com"; empty: as the Host header says it."""

    def __post_init__(self) -> None:
        check_url("public_url", self.public_url, "https://voice.example.com")


class TwilioAccount(Section, frozen=True):
    auth_token_env: Variable = ""
    """Names the environment variable with the account's auth token; empty: there are no calls from Twilio."""


class TwilioConfig(TwilioAccount, frozen=True):
    """The same, at a PoP."""

    own_twiml: bool = False
    """Streams are taken, too, that TwiML other than ours has begun. They bring no token: whoever has seen Twilio's
    signature of a stream, which never changes, can begin one."""


class TelnyxAccount(Section, frozen=True):
    public_key: str = ""
    """Of the account, by which its webhooks are checked (Ed25519, base64); empty: there are no calls from Telnyx."""
    api_key_env: Variable = ""
    """Names the environment variable with an API key, by which calls are answered."""
    api_url: str = "https://api.telnyx.com"

    def __post_init__(self) -> None:
        check_url("api_url", self.api_url, "https://api.telnyx.com")
        if bool(self.public_key) != bool(self.api_key_env):
            raise ValueError("public_key and api_key_env go together; give both to be called by Telnyx, or none")
        if self.public_key and not _is_key(self.public_key):
            raise ValueError(
                f"public_key: {self.public_key!r} is no Ed25519 key in base64; copy it from Telnyx's portal"
            )


class TelnyxConfig(TelnyxAccount, frozen=True):
    """The same, at a PoP."""

    codec: Literal["PCMU", "PCMA", "L16"] = "PCMU"
    """Of the stream, both ways. L16 is of 16 kHz, the others of 8."""
    application_id: Annotated[str, Meta(pattern=DIGITS)] = ""
    """Of the Call Control application: with it the calls that a run of this PoP left behind when it died are ended once
    it is started again, and otherwise with the first webhook."""


def _is_key(text: str) -> bool:
    """Whether it is base64 of 32 bytes."""
    try:
        return len(b64decode(text, validate=True)) == 32
    except (ValueError, binascii.Error):
        return False


PhoneKind = Literal["sip", "twilio", "telnyx"]


def takes_phones(sip: SipDoorConfig, twilio: TwilioAccount, telnyx: TelnyxAccount) -> bool:
    """Whether phone calls come in, by any of the doors."""
    return bool(sip.port or twilio.auth_token_env or telnyx.public_key)


class RouteConfig(Section, frozen=True):
    """Which phone calls an agent answers, and whose they are. The first that fits counts."""

    called: str = "*"
    """The number or SIP user that was dialled; "*" stands for anything, "+4930*" for what begins so."""
    domain: str = ""
    """SIP: the host of the address that was dialled; empty: any."""
    trunk: str = ""
    """SIP: by which trunk the call came; empty: any."""
    kind: Literal["", "sip", "twilio", "telnyx"] = ""
    """By which kind of door the call came; empty: any."""
    agent: str = ""
    """Empty: the PoP's default agent."""
    tenant: str = ""
    """Whose calls these are; may be left out where there is but one tenant, or none."""
