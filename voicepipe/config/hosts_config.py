"""`hosts.toml`: the names of a fleet's hosts, and what runs on each. `pops/deploy/hosts.toml` is one to copy; what the
hosts have in `/etc/voicepipe` is made from it (`commands/host_files.py`)."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from voicepipe.base.places import check_place
from voicepipe.base.ranges import Name, Section, check_hosts
from voicepipe.config.directory_config import DirectoryTrunk

PROBE = "probe"
"""The tenant and the trunk as whom a probe calls."""
_HOST = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,}")


class HostConfig(Section, frozen=True):
    """A host of a fleet, and what runs there."""

    name: str
    """Its name in the DNS, as "fra1.example.com"."""
    address: str
    """Its public IPv4 address."""
    place: tuple[float, ...]
    """Its place on the globe: latitude and longitude in degrees."""
    nat: bool = False
    """Whether it stands behind a 1:1 NAT, which gives it that address."""
    region: Name = "local"
    zone: str = ""
    """The zone in which its data are by law, such as "eu"."""
    nats: bool = False
    directory: bool = False
    pops: tuple[Name, ...] = ()
    """The ids of the PoPs that it runs: one, or one a GPU."""
    slots: Annotated[int, Meta(ge=0)] = 0
    """Calls at a time that each of its PoPs takes; 0: as many as its engines allow."""
    probe: bool = False
    """It calls the fleet again and again; Prometheus stands beside it."""

    def __post_init__(self) -> None:
        check_name("name", self.name)
        check_hosts(address=self.address or "-")
        if not self.place:
            raise ValueError("place: is missing; give latitude and longitude, such as [50.1, 8.7]")
        check_place(self.place)


class HostsConfig(Section, frozen=True):
    """A fleet's hosts, and whose calls it takes."""

    callers: str
    """The name that all directories share."""
    hosts: Annotated[tuple[HostConfig, ...], Meta(min_length=1)]
    customers: Annotated[tuple[Name, ...], Meta(min_length=1)]
    """The tenants, whose keys are made. Telephone calls are the first one's."""
    certificates: Literal["own", "public"] = "own"
    """Whose certificates browsers are shown: those of the authority that is made here, or others that the hosts get
    from a public one."""
    trunks: tuple[DirectoryTrunk, ...] = ()
    """Who calls by SIP without a password."""
    phones: tuple[Name, ...] = ()
    """SIP users, whose passwords are made."""

    def __post_init__(self) -> None:
        check_name("callers", self.callers)
        pops = [pop for host in self.hosts for pop in host.pops]
        several = {
            "customers": [*self.customers, PROBE],
            "phones": list(self.phones),
            "trunks": [*(trunk.name for trunk in self.trunks), PROBE],
            "hosts.pops": pops,
            "hosts.name": [self.callers, *(host.name for host in self.hosts)],
        }
        for key, names in several.items():
            if twice := next((name for name in names if names.count(name) > 1), ""):
                raise ValueError(f"{key}: {twice} is taken; give each a name of its own")
        for key in ("nats", "directory", "pops"):
            if not any(getattr(host, key) for host in self.hosts):
                raise ValueError(f"hosts: none has {key}; a fleet needs at least one")

    @property
    def takes_phones(self) -> bool:
        """Whether calls come in by SIP."""
        return bool(self.trunks or self.phones)

    @property
    def is_probed(self) -> bool:
        """Whether a probe calls it."""
        return any(host.probe for host in self.hosts)


def check_name(key: str, name: str) -> None:
    """Raises ValueError: it is no name of the DNS with a domain."""
    if len(name) > 253 or not _HOST.fullmatch(name):
        raise ValueError(f"{key}: {name!r} is no host's name; give one with its domain, such as fra1.example.com")
