"""Who answers a phone call: its route, tenant and agent."""

from voicepipe.agent import Agent
from voicepipe.call_api import PopApi, Tenant
from voicepipe.config.phone_config import PhoneKind, RouteConfig
from voicepipe.errors import Refused
from voicepipe.ingress.doors import find_agent
from voicepipe.ingress.routes import find, tenant_of


class NoRoute(Refused):
    """No route of the configuration is meant for this call."""

    reason = "no_route"


def placed(
    pop: PopApi, kind: PhoneKind, called: str, asked: str = "", *, domain: str = "", trunk: str = ""
) -> tuple[Tenant, Agent]:
    """Whose call it is and which agent answers: the route's, or else the one that was `asked` for, or the default.

    Raises NoRoute, UnknownModel.
    """
    routes = pop.config.routes
    route = find(routes, kind=kind, called=called, domain=domain, trunk=trunk) if routes else RouteConfig()
    if route is None:
        raise NoRoute(f"No route is meant for {called or 'an unknown number'!r} by {kind}: add one to [[routes]].")
    tenant = tenant_of(route, pop.config)
    return tenant, find_agent(pop, tenant, route.agent or asked or None)
