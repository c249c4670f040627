"""A caller's request for a PoP, by any protocol, and the PoPs for it: by the directory's file, with the tenants and
routes of the newest edition."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import HTTPConnection

from voicepipe.base.networks import network_of
from voicepipe.base.places import Place, place_of
from voicepipe.call_api import NO_TENANT, Grant
from voicepipe.config.directory_config import DirectoryConfig, DirectoryRoute, DirectoryTenant
from voicepipe.config.phone_config import PhoneKind
from voicepipe.config.rereads import Rereads
from voicepipe.directory.directory import Directory, Placement
from voicepipe.directory.fleet_view import SeenPop
from voicepipe.directory.router import CANDIDATES, WantedCall, eligible
from voicepipe.directory.signed_keys import SignedKeys
from voicepipe.ingress.access import UnknownModel
from voicepipe.ingress.api_keys import Caller, Tenants, viewer_of
from voicepipe.ingress.phone import route_for
from voicepipe.ingress.wire_errors import WireError

MOST_ROUND_TRIPS = 64
"""PoPs whose round trips a caller may give, and PoPs that they may name as tried."""
MOST_TRIED = 6
"""PoPs that a directory tries for a client that cannot ask again: in a crowd the nearest may have filled by then."""
Text = Annotated[str, Meta(max_length=200)]
Pop = Annotated[str, Meta(max_length=64)]


class Require(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Requirements that a PoP must meet."""

    agent: Text = ""
    language: Text = ""
    model: Text = ""
    zone: Text = ""


class CallRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of POST /v1/calls."""

    kind: Annotated[str, Meta(pattern="^(websocket|webrtc)$")] = "websocket"
    rtt_ms: Annotated[dict[Pop, Annotated[float, Meta(ge=0, le=10_000)]], Meta(max_length=MOST_ROUND_TRIPS)] = {}
    place: Place | None = None
    require: Require = Require()
    tried: Annotated[tuple[Pop, ...], Meta(max_length=MOST_ROUND_TRIPS)] = ()


class DirectoryRules:
    """The configuration that a directory uses, and the tenants' keys, as `credentials.keys_of` finds them."""

    def __init__(self, config: DirectoryConfig, keys: Mapping[str, DirectoryTenant]) -> None:
        self.config = config
        self.keys = Tenants(keys, "directory")
        self.rereads = Rereads[DirectoryConfig]()
        """What is read again while it runs, besides its tenants, routes and canaries."""

    def become(self, config: DirectoryConfig, keys: Mapping[str, DirectoryTenant]) -> None:
        """Use this configuration and its tenants' keys from now on."""
        self.keys.become(keys)
        self.config = config

    def tenant(self, name: str) -> DirectoryTenant | None:
        return next((tenant for tenant in self.config.tenants if tenant.name == name), None)


class CallPlacing:
    """Chooses PoPs for calls over HTTP, by the rules of one directory's tenants."""

    def __init__(self, rules: DirectoryRules, directory: Directory, signed_keys: SignedKeys) -> None:
        self.here = place_of(rules.config.directory.place)
        self.bounced = directory.bounced
        self._directory = directory
        self._signed_keys = signed_keys
        self._rules = rules

    async def place(self, who: Caller, asked: CallRequest, network: str, most: int = CANDIDATES) -> Placement:
        """The PoPs for a call. `network`: as `Grant.network`. Raises NoPop; UnknownModel; WireError; Unauthorized: the
        session of their `ek_` key is lost."""
        wanted = replace(self.wanted(who, asked), most=most)
        if who.tenant.agents and not set(wanted.agents) <= set(who.tenant.agents):
            raise UnknownModel(f"The key's owner has no agent {wanted.agents[0]!r}.")
        if asked.place and not who.secret:  # Their server asks for them, and says where they are.
            network = ""
        grant = msgspec.structs.replace(self.grant(who), kind=asked.kind, agents=wanted.agents, network=network)
        session = await self._signed_keys.session(self._signed_keys.read(who.secret)) if who.secret else b""
        return await self._directory.place(wanted, grant, session)

    def wanted(self, who: Caller, asked: CallRequest) -> WantedCall:
        """The requirements of this caller. Raises WireError: the call would have to be in two zones."""
        require = asked.require
        agent = who.agent or require.agent
        owner = self._rules.tenant(who.tenant.name)
        return WantedCall(
            kind=asked.kind,
            place=asked.place or self.here,
            rtt_ms=asked.rtt_ms,
            zone=_zone(owner.zone if owner else "", require.zone),
            agents=(agent,) if agent else who.tenant.agents,
            language=require.language,
            model=require.model,
            tried=frozenset(asked.tried),
        )

    async def place_named(self, who: Caller, kind: str, model: str | None, network: str = "") -> Placement:
        """The PoPs for a client that was not made for directories. Raises as `place`."""
        return await self.place(who, CallRequest(kind=kind, require=self.named(model)), network, MOST_TRIED)

    def named(self, model: str | None) -> Require:
        """The agent that such a client means: stock SDKs insist on model names of their own, which mean the default
        agent."""
        known = any(model in seen.condition.agents for seen in self._directory.pops())
        return Require(agent=model if model and known else "")

    def grant(self, who: Caller) -> Grant:
        """The rights of this caller's tokens, whatever they ask for."""
        holder = self._signed_keys.read(who.secret).ek if who.secret else ""
        return Grant(id="", tenant=who.tenant.name, agents=who.tenant.agents, slots=who.tenant.slots, holder=holder,
                     agent=who.agent or "", locked=who.locked, operator=viewer_of(who) is None)  # fmt: skip


def network_of_client(connection: HTTPConnection) -> str:
    """The network of a request's client; where a trusted proxy has forwarded it, of the client that the proxy names."""
    return network_of(connection.client.host) if connection.client else ""


def _zone(own: str, required: str) -> str:
    """The zone of a call whose tenant has one, or whose caller requires one. Raises WireError: they are two."""
    if own and required and own != required:
        stays = f"This key's calls stay in zone {own!r}, so none can be in zone {required!r}: leave the zone out."
        raise WireError("invalid_value", stays, "require.zone")
    return own or required


def askable(pops: Sequence[SeenPop], wanted: WantedCall, about: str = "") -> list[SeenPop]:
    """PoPs for a request that is not about one call: those that may take such a call, the best first. `about`: an
    agent; PoPs that have it, if any. A PoP that drains or is silent is asked only where all do. Raises NoPop with the
    requirement that none meets."""
    possible = eligible(pops, wanted)
    having = [seen for seen in possible if about in seen.condition.agents] or possible
    staying = [seen for seen in having if not seen.silent and seen.condition.status != "draining"] or having
    return sorted(staying, key=lambda seen: (seen.silent, seen.condition.status != "ok", seen.pop))


class PhonePlacing:
    """Chooses PoPs for phone calls: by the number that was dialled, the routes of one directory and the carrier's place
    on the globe."""

    def __init__(self, rules: DirectoryRules, directory: Directory) -> None:
        self._rules = rules
        self._here = place_of(rules.config.directory.place)
        self._directory = directory

    async def place(
        self, kind: PhoneKind, called: str, gateway: Place | None, *, domain: str = "", trunk: str = "",
        asked: str = "", network: str, most: int = CANDIDATES,
    ) -> Placement:  # fmt: skip
        """The PoPs for a phone call. `gateway`: the carrier's place; None: the directory's. `asked`: the agent of a
        route that names none. `network`: as `Grant.network`. Raises NoRoute, NoPop."""
        routes = self._rules.config.routes
        route = route_for(routes, DirectoryRoute(), kind=kind, called=called, domain=domain, trunk=trunk)
        owner = self._owner(route)
        agent = route.agent or asked
        agents = (agent,) if agent else owner.agents if owner else ()
        wanted = WantedCall(
            kind=kind,
            place=gateway or self._here,
            region=route.region,
            zone=owner.zone if owner else "",
            agents=agents,
            most=most,
        )
        tenant = owner.name if owner else NO_TENANT
        grant = Grant(id="", tenant=tenant, kind=kind, agents=agents, network=network)
        # A telephone brings no token to the PoP: whose call it is goes there by the bus.
        return await self._directory.place(wanted, grant, b"{}" if kind == "sip" and owner else b"")

    def _owner(self, route: DirectoryRoute) -> DirectoryTenant | None:
        """The tenant of a call; never a guess among several: `cross_checks.check_owners`."""
        if not self._rules.config.tenants:
            return None
        [name] = [route.tenant] if route.tenant else {tenant.name for tenant in self._rules.config.tenants}
        return self._rules.tenant(name)
