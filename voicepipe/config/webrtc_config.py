"""The table of the configuration that concerns calls by WebRTC."""

from typing import Annotated

from msgspec import Meta

from voicepipe.ranges import Port, Section, Variable, Wait, check_hosts, check_ports


class WebRtcConfig(Section, frozen=True):
    addresses: tuple[str, ...] = ()
    """Of this machine, on which media are received (UDP); empty: those that `http.host` stands for."""
    public_address: str = ""
    """What a 1:1 NAT shows for them to callers; empty: there is no such NAT."""
    first_port: Port = 0
    last_port: Port = 0
    """UDP ports for media, one a call and address; 0: any."""
    connect_ms: Wait = 15_000
    """A caller whose connection is not there by then is given up."""
    turn_urls: tuple[str, ...] = ()
    """Of a coturn that shares a secret with us (`use-auth-secret`), for callers behind firewalls."""
    turn_secret_env: Variable = ""
    """The environment variable that holds the secret."""
    turn_ttl_s: Annotated[int, Meta(ge=60, le=86_400)] = 3600
    """So long a caller may use what we give them."""

    def __post_init__(self) -> None:
        if bool(self.turn_urls) != bool(self.turn_secret_env):
            raise ValueError("turn_urls and turn_secret_env go together; give both for TURN, or none")
        for url in self.turn_urls:
            if not url.startswith(("turn:", "turns:", "stun:")):
                raise ValueError(f"turn_urls: {url!r} is none; give one such as turn:turn.example.com:3478")
        for address in self.addresses:
            check_hosts(addresses=address)
        check_hosts(public_address=self.public_address)
        check_ports(self.first_port, self.last_port)
