"""Tables of the configuration that concern phones."""

import ipaddress
from typing import Annotated, Literal

from msgspec import Meta

from voicepipe.ranges import Ms, Name, Port, Section, Wait, check_hosts, check_ports


class SipUser(Section, frozen=True):
    """Who may call from anywhere, with a password (digest)."""

    name: Annotated[str, Meta(min_length=1)]
    password_env: str
    """The environment variable that holds the password."""


class SipTrunk(Section, frozen=True):
    """Who may call without a password: a provider, a PBX or an SBC, known by its addresses."""

    name: Name
    addresses: Annotated[tuple[str, ...], Meta(min_length=1)]
    """IPv4 addresses or networks ("198.51.100.0/24") that its signalling comes from."""

    def __post_init__(self) -> None:
        for address in self.addresses:
            try:
                ipaddress.IPv4Network(address)
            except ValueError:
                raise ValueError(f"addresses: {address!r} is none; give an IPv4 address or network such as "
                                 "198.51.100.0/24") from None  # fmt: skip


class SipConfig(Section, frozen=True):
    """Phone calls by SIP over UDP. Who may call: `trunks` by address, `users` by password, otherwise nobody but this
    machine."""

    port: Port = 0
    """0: no SIP."""
    host: str = ""
    """IPv4 address on which it listens, 0.0.0.0 for all; empty: `http.host`."""
    public_address: str = ""
    """What a 1:1 NAT shows for this host to callers; empty: there is no such NAT."""
    first_port: Port = 0
    last_port: Port = 0
    """UDP ports for media, two a call; 0: any."""
    trunks: tuple[SipTrunk, ...] = ()
    users: tuple[SipUser, ...] = ()
    realm: str = "voicepipe"
    """Shown to users who are asked for their password."""
    codecs: tuple[Literal["opus", "g722", "pcmu", "pcma"], ...] = ()
    """In our order of preference; empty: all, in the caller's."""
    srtp: Literal["optional", "required"] = "optional"
    """Encrypted sound (SDES, whose keys travel in the signalling: let that go through TLS)."""
    ring_ms: Ms = 0
    """So long a telephone rings before it is answered."""
    silent_ms: Wait = 30_000
    """A caller from whom no packet comes for so long is gone, unless the call is on hold."""

    def __post_init__(self) -> None:
        check_hosts(host="" if self.host == "0.0.0.0" else self.host, public_address=self.public_address)
        check_ports(self.first_port, self.last_port)
        for kind, names in (("trunks", [one.name for one in self.trunks]), ("users", [one.name for one in self.users])):
            if len(set(names)) < len(names):
                raise ValueError(f"{kind}: a name occurs twice; give each its own")
