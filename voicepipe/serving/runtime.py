"""What every command that serves needs: the event loop, its signals, a port."""

import argparse
import asyncio
import errno
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import uvloop

from voicepipe.base import trust
from voicepipe.base.errors import ConfigError, VoicepipeError, cause
from voicepipe.base.lookups import Limits, Lookups
from voicepipe.config import Config, HttpConfig
from voicepipe.config.cross_checks import check_owners
from voicepipe.config.directory_config import DirectoryConfig
from voicepipe.config.reloader import Reloader
from voicepipe.directory.tokens import check_keys
from voicepipe.ingress.certificate import check_certificate
from voicepipe.ingress.loopback_only import check_exposure, check_phones, is_loopback, sip_host
from voicepipe.serving.service_manager import ServiceManager, ServiceState

if TYPE_CHECKING:
    from voicepipe.pop.pop import Pop
    from voicepipe.pop.predecessor import Inherited, Predecessor

logger = logging.getLogger(__name__)
C = TypeVar("C", Config, DirectoryConfig)

SIP_PORT = 5060


def check_trust(config: Config) -> None:
    """Raises ConfigError: the file of authorities cannot be used."""
    trust.check(config.tls.ca)


REFUSALS = (check_exposure, check_phones, check_certificate, check_keys, check_trust)
"""Raise ConfigError where a PoP with this configuration does not start. Secrets are checked by `environment.check`."""
NOT_FOR_SERVICES = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals that make other services open their logs anew, or tell something."""
LOOKUPS = Limits(
    threads=32,  # So many names at a time may have a name server that does not answer.
    line=256,
    wait_s=1.0,  # Where lookups succeed, a thread is free much sooner.
    found_s=5.0,  # A server that moved is soon found again.
    missing_s=2.0,  # So is one that is new.
)


class Loop(uvloop.Loop):
    """uvloop, with lookups of host names that do not delay one another where a name server does not answer: httpx asks
    the loop for addresses."""

    def __init__(self) -> None:
        super().__init__()
        self._lookups = Lookups("names", LOOKUPS)

    async def getaddrinfo(
        self,
        host: str | bytes | None,
        port: str | bytes | int | None,
        *,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> list[Any]:
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        if not name or _is_address(name) or not isinstance(port, int):
            return await super().getaddrinfo(host, port, family=family, type=type, proto=proto, flags=flags)
        found = await self._lookups.find((name, family, type, proto, flags))
        return [(*info, (address[0], port, *address[2:])) for *info, address in found]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def run(command: Coroutine[Any, Any, int], reload: Callable[[], None] | None = None) -> int:
    """Run a command on uvloop; its exit status.

    Ctrl-C or SIGTERM cancels it once, so that its `async with` blocks drain live calls; that is a clean end (0). A
    second signal cancels the draining too. A service gives `reload`, which SIGHUP calls (a terminal that is closed
    sends it, too); of SIGUSR1 and SIGUSR2 it only logs that they change nothing. Other commands end with their terminal
    (SIGHUP), unless it is `nohup` that started them. Raises VoicepipeError as such, not in the group of a TaskGroup.
    """
    try:
        with asyncio.Runner(loop_factory=Loop) as runner:
            return runner.run(_until_signal(command, reload))
    except BaseExceptionGroup as group:
        ours, others = group.split(VoicepipeError)
        if ours is None or others is not None:
            raise
        raise cause(ours) from None


async def _until_signal(command: Coroutine[Any, Any, int], reload: Callable[[], None] | None) -> int:
    loop = asyncio.get_running_loop()
    task = loop.create_task(command)
    ends = [signal.SIGINT, signal.SIGTERM]
    if reload:
        loop.add_signal_handler(signal.SIGHUP, reload)
        for number in NOT_FOR_SERVICES:
            loop.add_signal_handler(number, _tell_ignored, number)
    elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        ends.append(signal.SIGHUP)
    for number in ends:
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return 0


def _tell_ignored(number: signal.Signals) -> None:
    logger.warning("%s is ignored: SIGHUP reads the files again, SIGTERM lets live calls end and stops", number.name)


async def serve(
    config: Config, reloader: Reloader[Config] | None = None, manager: ServiceManager | None = None,
    predecessor: "Predecessor | None" = None,
) -> int:  # fmt: skip
    """Run a PoP until a signal. `reloader` reads its files again; `manager` hears how it is; `predecessor`: the process
    from which it takes over."""
    # Here, not above: the engines' libraries take a second to import, and `doctor` needs only the port.
    from voicepipe.pop.running import running

    pop: Pop | None = None
    manager = manager or ServiceManager()
    if predecessor:
        manager.watches_us, predecessor.on_main = False, manager.watched
    started = running(config, reloader=reloader, predecessor=predecessor)
    async with manager.informed(lambda: state_of(pop)), started as pop:  # noqa: F811
        pop.successor.main = manager.watch
        where = f"{url(config.http)}{'' if is_loopback(config.http.host) else ', also from other machines'}"
        elsewhere = (
            "" if is_loopback(sip_host(config.sip, config.http)) else " (from other machines: this one's own address)"
        )
        phones = f", and phones at {sip_url(config)}{elsewhere}" if config.sip.port else ""
        print(f"{config.pop.id} answers at {where}{phones}; Ctrl-C drains and stops", flush=True)
        manager.tell()
        try:
            await pop.dismissed()
        finally:
            manager.stopping(config.pop.drain_ms / 1000)
        await pop.drain()  # Here, so that a first signal only ends this wait; the PoP still drains until a second one.
        return 0


def state_of(pop: "Pop | None") -> ServiceState:
    """What the service manager is told of a PoP; None: its engines are loading."""
    if not pop:
        return ServiceState(False, "starting: engines load")
    slots = f"{pop.calls} of {pop.config.pop.slots} slots are taken"
    if pop.calls_elsewhere:
        slots += f", {pop.calls_elsewhere} of them in the process before"
    match pop.status:
        case "ok":
            return ServiceState(True, f"takes calls; {slots}")
        case "draining":
            return ServiceState(True, f"draining: takes no new calls; {pop.calls} go on")
        case "starting" | "engine_down" as status:
            return ServiceState(False, f"{status}: takes no calls; {slots}")
        case status:
            return ServiceState(True, f"{status}: takes no more calls at present; {slots}")


async def serve_directory(
    config: DirectoryConfig, reloader: Reloader[DirectoryConfig] | None = None, manager: ServiceManager | None = None
) -> int:
    """Run a directory until a signal. `reloader` reads its file again; `manager` hears how it is. Raises
    ConfigError."""
    from voicepipe.directory.server.relay_drain import RelayDrain
    from voicepipe.directory.server.run import check, serve

    check(config)
    ready, relay_drain = asyncio.Event(), RelayDrain()
    drain_s = config.directory.drain_ms / 1000
    manager = manager or ServiceManager()

    def state() -> ServiceState:
        does = "draining: relays no new calls" if relay_drain.has_begun else "answers" if ready.is_set() else "starting"
        return ServiceState(ready.is_set(), f"{does}; {relay_drain.calls} calls are relayed")

    async with manager.informed(state), asyncio.TaskGroup() as group:
        group.create_task(serve(config, ready, relay_drain=relay_drain, reloader=reloader))
        await ready.wait()
        print(f"{config.directory.id} answers at {url(config.http)}; Ctrl-C drains and stops", flush=True)
        manager.tell()
        try:
            return await forever()
        finally:
            manager.stopping(drain_s)
            await relay_drain.over(drain_s)


def check_directory(config: DirectoryConfig) -> None:
    """Raises ConfigError: a directory would not start with this configuration."""
    from voicepipe.directory.server.run import check

    check_owners(config)
    check(config)


async def forever() -> int:
    """Wait until the command is cancelled."""
    never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    return await never


def with_address(config: C, host: str | None, port: int | None) -> C:
    """The configuration with the command line's address, which was free just now. Raises ConfigError."""
    return msgspec.structs.replace(config, http=_with_address(config.http, host, port))


def with_address_of(config: C, running: C, options: argparse.Namespace) -> C:
    """The configuration as its files have it now, with the addresses of the server that runs with it, as far as its
    files leave them to the command line (`options`), or to chance."""
    http, sip = config.http, config.sip
    its = {key: getattr(running.http, key) for key in ("host", "port") if getattr(options, key) is not None}
    if not http.port:
        its["port"] = running.http.port
    if getattr(options, "sip_port", None) is not None:
        sip = msgspec.structs.replace(sip, port=running.sip.port)
    return msgspec.structs.replace(config, http=msgspec.structs.replace(http, **its), sip=sip)


def _with_address(http: HttpConfig, host: str | None, port: int | None) -> HttpConfig:
    changes = {key: value for key, value in (("host", host), ("port", port)) if value is not None}
    http = msgspec.structs.replace(http, **changes)
    try:
        return msgspec.structs.replace(http, port=free_port(http))
    except ConfigError as error:
        raise _of_options(error, *changes) from None


def with_inherited(config: Config, inherited: "Inherited", options: argparse.Namespace) -> Config:
    """The configuration with the addresses of the process from which this one takes over. `options`: the command
    line's. Raises ConfigError: it has others."""
    replace = msgspec.structs.replace
    given = {key: value for key in ("host", "port") if (value := getattr(options, key)) is not None}
    http = replace(config.http, **given)
    any_phone_port = options.sip_port == 0
    sip = config.sip if options.sip_port is None else replace(config.sip, port=options.sip_port)
    for key, has, had, free in (
        ("http.host", http.host, inherited.http[0], False),
        ("http.port", http.port, inherited.http[1], not http.port),
        ("sip.host", sip_host(sip, http), inherited.sip[0], not inherited.sip[1]),
        ("sip.port", sip.port, inherited.sip[1], any_phone_port),
    ):
        if has != had and not free:
            raise ConfigError(f"{key} is {has!r} now, and {had!r} in the process that runs. An upgrade keeps the "
                              "addresses: set the old one, or restart the PoP.")  # fmt: skip
    return replace(config, http=replace(http, port=inherited.http[1]), sip=replace(sip, port=inherited.sip[1]))


def with_sip_port(config: Config, port: int) -> Config:
    """The configuration with phones at this UDP port; 0: at any free one. Raises ConfigError: it is taken."""
    host = sip_host(config.sip, config.http)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((host, port))
            port = int(probe.getsockname()[1])
    except OSError as error:
        refusal = ConfigError(
            f"UDP port {port} on {host} cannot be had for phones ({error.strerror}); choose another sip.port, such "
            f"as --sip-port {port + 10}"
        )
        options = () if port == config.sip.port else ("sip-port",)
        raise _of_options(refusal, *options) from error
    return msgspec.structs.replace(config, sip=msgspec.structs.replace(config.sip, port=port))


def _of_options(error: ConfigError, *options: str) -> ConfigError:
    """`error` with these options of the command line in front: the files are not at fault."""
    if not options:
        return error
    return ConfigError(f"{' '.join(f'--{option}' for option in options)}: {error}")


def with_phones(config: Config) -> Config:
    """The configuration with phones at their usual port, unless it has one, or at any that is free; without phones
    where it listens on IPv6, which SIP does not use."""
    if config.sip.port or ":" in sip_host(config.sip, config.http):
        return config
    try:
        return with_sip_port(config, SIP_PORT)
    except ConfigError:
        return with_sip_port(config, 0)


def free_port(http: HttpConfig) -> int:
    """`http.port`, or any free one for 0. Raises ConfigError: it cannot be used."""
    try:
        family = socket.getaddrinfo(http.host, http.port, type=socket.SOCK_STREAM)[0][0]
        with socket.create_server((http.host, http.port), family=family) as server:
            return int(server.getsockname()[1])
    except OSError as error:
        raise ConfigError(_refusal(http, error)) from error


def _refusal(http: HttpConfig, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        taken = f"port {http.port} on {http.host} is taken by another program"
        return f"{taken}; choose another, such as --port {http.port + 1}"
    if error.errno == errno.EACCES:
        return f"port {http.port} is for the administrator only; choose one above 1023, such as --port 8080"
    return f"cannot listen on {http.host}: {error.strerror}; use an address of this machine, such as --host 127.0.0.1"


def sip_url(config: Config) -> str:
    """The address that a telephone on this machine calls."""
    host = sip_host(config.sip, config.http)
    return f"sip:{config.pop.default_agent}@{'127.0.0.1' if host == '0.0.0.0' else host}:{config.sip.port}"


def url(http: HttpConfig) -> str:
    """The server's address for programs on this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(http.host, http.host)
    return f"http{'s' if http.cert else ''}://{f'[{host}]' if ':' in host else host}:{http.port}"
