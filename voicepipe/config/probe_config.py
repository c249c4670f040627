"""Configuration of a probe as a service: `configs/probe.toml` has every key with its default."""

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from voicepipe.base.errors import ConfigError
from voicepipe.base.places import check_place
from voicepipe.base.ranges import Ms, Port, Section, Variable, check_host, check_url
from voicepipe.base.secret_source import SecretPair, check_pairs
from voicepipe.config.credentials import Secret
from voicepipe.config.fleet_config import TlsConfig
from voicepipe.config.pop_config import LogConfig

ProbeDoor = Literal["websocket", "webrtc", "sip"]
"""By which door a probe calls."""
CALL_S = 12
"""Seconds that a probe's call takes, about: greeting, question and answer are heard out."""


class ProbeSection(Section, frozen=True):
    """`[probe]`."""

    every_s: Annotated[int, Meta(ge=5, le=86_400)] = 60
    """Seconds between two calls to the same target by the same door."""
    again_s: Annotated[int, Meta(ge=1, le=3600)] = 5
    """Seconds after which a target is called once more that has just failed: it takes two calls to be sure."""
    calls: Annotated[int, Meta(ge=1, le=100)] = 2
    """Calls at a time, to all targets together."""
    dial_s: Annotated[float, Meta(gt=0, le=60)] = 5.0
    """Seconds after which a call that is not up is given up."""
    limit_s: Annotated[int, Meta(ge=10, le=600)] = 45
    """Seconds after which a call is ended, whatever is still said."""
    unsure_ms: Ms = 50
    """Milliseconds: where this process itself was later than that, what this may explain is not taken for a target's
    fault."""

    def __post_init__(self) -> None:
        if self.again_s >= self.every_s:
            raise ValueError("again_s: is for a sooner call after a failure; make it less than every_s")


class ProbeHttpConfig(Section, frozen=True):
    """Where a probe shows its metrics and its health."""

    host: str = "127.0.0.1"
    port: Port = 9465
    metrics_key_env: Variable = ""
    """The environment variable with the key to /metrics. Without one, and without a file, this machine may read
    them."""
    metrics_key_file: str = ""
    """The file with that key."""
    metrics_key = SecretPair()

    def __post_init__(self) -> None:
        check_pairs(self)
        check_host("host", self.host)


class ProbedConfig(Section, frozen=True):
    """A PoP or a directory that a probe calls."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    """The name of the target in metrics and alerts."""
    url: str = ""
    """The address of a PoP, ..."""
    directory: str = ""
    """... or of a directory, which says where to call."""
    straight: bool = False
    """Of a directory: each of its PoPs is called at its own address, too."""
    pop: str = ""
    """The id of the PoP at `url`, for alerts; empty: the target's name."""
    by: tuple[ProbeDoor, ...] = ("websocket",)
    phone: str = ""
    """Where telephones call (UDP), as "fra1.example.com:5060"; empty: port 5060 of the same host."""
    agent: str = ""
    """The agent that is called; by SIP the number. Empty: the default one."""
    place: tuple[float, ...] = ()
    """Where the callers of a directory say that they are: latitude and longitude. Empty: where the directory is."""
    key_env: Variable = ""
    """The environment variable with the key that opens the target, ..."""
    key_file: str = ""
    """... or the file with it."""
    key = SecretPair()
    operator_key_env: Variable = ""
    """The same for the directory's operator, whose key lists its PoPs."""
    operator_key_file: str = ""
    operator_key = SecretPair()
    user: str = ""
    """The SIP user as whom telephones call; empty: without a password."""
    password_env: Variable = ""
    password_file: str = ""
    """Where their password is."""
    password = SecretPair()
    budget_ms: Ms = 400
    """Milliseconds: a longer heard gap is late. The PoP's own pop.budget_ms, and what the network takes."""
    greets: bool = True
    """Whether the agent speaks first: if it does not, that is a fault."""
    question: str = "finished-002-heart"
    """What is asked: a recording of the package, by its id, or the path of a sound file."""
    words: str = ""
    """The words in the sound file."""
    expect: tuple[str, ...] = ()
    """Regular expressions, one of which the right answer holds. Empty: what the shipped front desk says to a recording
    of the package, any answer to a sound file."""

    def __post_init__(self) -> None:
        if bool(self.url) == bool(self.directory):
            raise ValueError("url: give it for a PoP, or directory for a directory, and not both")
        check_url("url", self.url, "https://fra1.example.com:8080")
        check_url("directory", self.directory, "https://voice.example.com")
        if self.straight and not self.directory:
            raise ValueError("straight: calls the PoPs of a directory; give directory, or leave it out")
        if not self.by:
            raise ValueError('by: give at least one of "websocket", "webrtc" and "sip"')
        check_pairs(self)
        if bool(self.user) != bool(self.password):
            raise ValueError("user: a SIP user has a password: give password_env or password_file, too")
        check_place(self.place)
        for pattern in self.expect:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"expect: {pattern!r} is no regular expression: {error}") from None


class ProbeConfig(Section, frozen=True):
    """The whole file of a probe."""

    probe: ProbeSection = ProbeSection()
    http: ProbeHttpConfig = ProbeHttpConfig()
    tls: TlsConfig = TlsConfig()
    log: LogConfig = LogConfig(level="warning")
    targets: tuple[ProbedConfig, ...] = ()


def check_targets(config: ProbeConfig) -> None:
    """Raises ConfigError: two targets have one name, or the calls do not fit into a round."""
    names = [target.name for target in config.targets]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ConfigError(f"targets: two are named {twice}; metrics tell them apart by name")
    check_round(config.probe, sum(len(target.by) for target in config.targets))


def check_round(probe: ProbeSection, series: int) -> None:
    """Raises ConfigError: so many calls take longer than a round."""
    needed = -(-series * CALL_S // probe.calls)
    if needed > probe.every_s:
        raise ConfigError(
            f"probe.every_s: {series} calls of some {CALL_S} s, {probe.calls} at a time, take {needed} s, and a round "
            f"is {probe.every_s} s: raise probe.calls or probe.every_s"
        )


def secrets_of(config: ProbeConfig) -> Iterator[Secret]:
    """The secrets that a probe needs. They may change while it runs, and are read for every call."""
    yield metrics_key(config.http)
    for number, its in enumerate(config.targets):
        yield from (target_key(its, number), operator_key(its, number), sip_password(its, number))


def metrics_key(http: ProbeHttpConfig) -> Secret:
    """The key to a probe's metrics; empty: there is none."""
    return Secret("http.metrics_key", http.metrics_key, "a key")


def target_key(its: ProbedConfig, number: int) -> Secret:
    """The key that opens the target `number`; empty: it needs none."""
    return Secret(f"targets[{number}].key", its.key, f"the key of {its.name}")


def operator_key(its: ProbedConfig, number: int) -> Secret:
    """The key of the directory's operator; empty: it needs none."""
    return Secret(f"targets[{number}].operator_key", its.operator_key, "the operator's key")


def sip_password(its: ProbedConfig, number: int) -> Secret:
    """The password of the target's SIP user; empty: there is none."""
    return Secret(f"targets[{number}].password", its.password, f"the password of {its.user}")
