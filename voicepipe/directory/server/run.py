"""`voicepipe directory`: collect the reports of PoPs, and tell callers where to call, until a signal."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from starlette.routing import BaseRoute

from voicepipe.base import open_files
from voicepipe.base.errors import ConfigError
from voicepipe.base.tasks import supervised
from voicepipe.base.trust import check as check_trust
from voicepipe.base.trust import for_http
from voicepipe.config.credentials import keys_of, operator_keys
from voicepipe.config.directory_config import DirectoryConfig
from voicepipe.config.reloader import Reloader
from voicepipe.directory.bus import Bus
from voicepipe.directory.directory import Directory
from voicepipe.directory.editions.directory_editions import DirectoryEditions, begun, store_of
from voicepipe.directory.known_pops import KnownPops
from voicepipe.directory.nats_bus import NatsBus
from voicepipe.directory.reporter import EVERY_S, UNEVEN
from voicepipe.directory.server.call_placement import DirectoryRules
from voicepipe.directory.server.directory_http import app, reaching_pops
from voicepipe.directory.server.relay import MESSAGE_BYTES
from voicepipe.directory.server.relay_drain import RelayDrain
from voicepipe.directory.server.sip_redirect import redirecting
from voicepipe.directory.signed_keys import SignedKeys
from voicepipe.directory.tokens import Signer, public_keys, signer
from voicepipe.ingress import server
from voicepipe.ingress.loopback_only import check_providers, check_sip, check_who_may_call

logger = logging.getLogger(__name__)

BUS_S = 3.0
"""Seconds for which a directory waits for the bus when it begins."""
REPORTED_S = EVERY_S * (1 + UNEVEN) + 0.1
"""Seconds for which it then waits for the reports of PoPs."""


async def serve(
    config: DirectoryConfig,
    serving: asyncio.Event,
    own_bus: Bus | None = None,
    beside: Sequence[BaseRoute] = (),
    relay_drain: RelayDrain | None = None,
    reloader: Reloader[DirectoryConfig] | None = None,
) -> None:
    """Run a directory until cancelled. `serving` is set once callers get in. `own_bus`: one of this process, in place
    of the configured one. `beside`: what is served besides the directory's own endpoints. `relay_drain`: notified when
    it is to be stopped. `reloader` reads its file again. Raises ConfigError."""
    open_files.raise_limit()
    relay_drain = relay_drain or RelayDrain()
    own, store = config, store_of(config)
    its = await asyncio.to_thread(begun, own, store)
    config = its.config
    rules = DirectoryRules(config, keys_of(config.tenants))
    signing = signer(config.directory.key)
    operator = operator_keys(config.http, keys_of(config.tenants))
    known = await asyncio.to_thread(known_pops, config, own_bus)
    tls = await asyncio.to_thread(for_http, config.tls.ca)
    hearing = nullcontext(own_bus) if own_bus else NatsBus.connected(config.bus, config.tls.ca)
    async with hearing as bus, reaching_pops(tls) as client, asyncio.TaskGroup() as group:
        # PoPs of one process are all as near as it is.
        directory = Directory(bus, signing, canaries=config.canaries, learns=own_bus is None, known=known)
        signed_keys = SignedKeys(bus, signing, known_keys(signing, config))
        rules.rereads.join(lambda fresh: partial(signed_keys.become, known_keys(signing, fresh)))
        group.create_task(supervised("hearing of PoPs", directory.run))
        group.create_task(supervised("hearing of ek_ keys", signed_keys.run))
        group.create_task(supervised("hearing of other directories' calls", directory.call_claims.run))
        editions: DirectoryEditions | None = None
        if store:
            editions = DirectoryEditions(bus, directory, own, store, its, partial(use_config, rules, directory))
            group.create_task(supervised("telling of editions", editions.run))
            group.create_task(supervised("hearing of editions", editions.listen))
        application = await asyncio.to_thread(  # it reads pages
            app, rules, directory, signed_keys, operator, client, beside, relay_drain, editions
        )
        if known and not own_bus:
            group.create_task(supervised("remembering PoPs", known.run))
        if reloader:
            reading = partial(_reload, serving, reloader, own, rules, directory, editions)
            group.create_task(supervised("reading the file again", reading))
        if not own_bus:
            await listened(bus)
            tell_unknown_regions(config, directory)
        listener = server.bind(config.http)  # Only now: who is refused goes on to another directory of this name.
        room = await asyncio.to_thread(open_files.for_relays, config.directory.connections)
        async with redirecting(rules, directory, relay_drain):
            await server.serve(application, listener, config.http, room, MESSAGE_BYTES, serving, rules.rereads)


def known_pops(config: DirectoryConfig, own_bus: Bus | None) -> KnownPops | None:
    """The PoPs that keep records, as they are remembered; None: for a day. `own_bus`: no PoP outlives this process.
    Blocking. Raises ConfigError."""
    if own_bus:
        return KnownPops()
    return KnownPops(Path(config.directory.known_pops)) if config.directory.known_pops else None


def known_keys(signing: Signer, config: DirectoryConfig) -> dict[str, Ed25519PublicKey]:
    """The public keys of all directories whose `ek_` keys are taken here, by their ids. Raises ConfigError."""
    return {signing.key_id: signing.key.public_key()} | public_keys(config.directory.keys)


async def _reload(
    serving: asyncio.Event,
    reloader: Reloader[DirectoryConfig],
    own: DirectoryConfig,
    rules: DirectoryRules,
    directory: Directory,
    editions: DirectoryEditions | None,
) -> None:
    """Read the file again whenever that is asked for, until cancelled. `own`: the directory's own configuration."""

    async def take(fresh: DirectoryConfig) -> None:
        async with editions.rebased(fresh) if editions else nullcontext(fresh) as config:
            use = await asyncio.to_thread(rules.rereads.read, config)
            await use_config(rules, directory, config)
            use()

    await serving.wait()  # Now every part has joined `rereads`.
    await reloader.run(own, rules.rereads, take)


async def use_config(rules: DirectoryRules, directory: Directory, config: DirectoryConfig) -> None:
    """Use other tenants, routes and shares. Raises ConfigError: a tenant's key cannot be read; then nothing has
    changed."""
    rules.become(config, await asyncio.to_thread(keys_of, config.tenants))
    directory.shares.change(config.canaries)


async def listened(bus: Bus) -> None:
    """Returns once every PoP has had time to report, or the bus is not reached: a directory without reports would
    refuse callers."""
    with suppress(TimeoutError):
        async with asyncio.timeout(BUS_S):
            while not bus.is_connected():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await asyncio.sleep(REPORTED_S)


def tell_unknown_regions(config: DirectoryConfig, directory: Directory) -> None:
    """Log the routes whose region no reporting PoP has: their calls go to the nearest PoP of any region."""
    heard = sorted({seen.condition.region for seen in directory.pops()})
    for index, route in enumerate(config.routes):
        if heard and route.region and route.region not in heard:
            logger.warning("routes[%d].region: no PoP of region %r is heard, so its calls go to any; heard: %s", index,
                           route.region, ", ".join(heard))  # fmt: skip


def check(config: DirectoryConfig) -> None:
    """Raises ConfigError: a directory cannot run with this configuration."""
    if not config.bus.servers:
        raise ConfigError(
            "bus.servers: a directory hears of PoPs by NATS; say where that is, such as "
            '["nats://127.0.0.1:4222"] after: nats-server -a 127.0.0.1'
        )
    check_who_may_call(config.http, config.tenants)
    check_sip(config.sip, config.http)
    check_providers(config.telephony)
    check_trust(config.tls.ca)
