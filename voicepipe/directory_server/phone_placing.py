"""Where a phone call may go, whichever way it comes: by the number that was dialled and the carrier's place."""

from voicepipe.call_api import NO_TENANT, Grant
from voicepipe.config.directory_config import DirectoryRoute, DirectoryTenant
from voicepipe.config.phone_config import PhoneKind
from voicepipe.directory.directory import Directory, Placement
from voicepipe.directory.router import CANDIDATES, WantedCall
from voicepipe.directory_server.rules import Rules
from voicepipe.ingress.phone import NoRoute
from voicepipe.ingress.routes import find
from voicepipe.places import Place, place_of


class PhonePlacing:
    """By the routes of one directory."""

    def __init__(self, rules: Rules, directory: Directory) -> None:
        self._rules = rules
        self._here = place_of(rules.config.directory.place)
        self._directory = directory

    async def place(
        self, kind: PhoneKind, called: str, gateway: Place | None, *, domain: str = "", trunk: str = "",
        asked: str = "", network: str, most: int = CANDIDATES,
    ) -> Placement:  # fmt: skip
        """`gateway`: where the carrier's is; None: where the directory stands. `asked`: the agent of a route that names
        none. `network`: as `Grant.network`. Raises NoRoute, NoPop."""
        route = self._route(kind, called, domain, trunk)
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
        return await self._directory.place(wanted, grant)

    def _owner(self, route: DirectoryRoute) -> DirectoryTenant | None:
        """Never a guess among several: `together.check_routes`."""
        if not self._rules.config.tenants:
            return None
        [name] = [route.tenant] if route.tenant else {tenant.name for tenant in self._rules.config.tenants}
        return self._rules.tenant(name)

    def _route(self, kind: PhoneKind, called: str, domain: str, trunk: str) -> DirectoryRoute:
        """Raises NoRoute."""
        routes = self._rules.config.routes
        if not routes:
            return DirectoryRoute()
        route = find(routes, kind=kind, called=called, domain=domain, trunk=trunk)
        if route is None:
            raise NoRoute(f"No route is meant for {called or 'an unknown number'!r} by {kind}: add one to [[routes]].")
        return route
