"""The route of a phone call, and with it the tenant and the agent."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from voicepipe.agent import Agent
from voicepipe.base.caller_number import SEPARATORS
from voicepipe.base.errors import Refused
from voicepipe.call_api import NO_TENANT, PopApi, Tenant
from voicepipe.config import Config
from voicepipe.config.phone_config import PhoneKind, RouteConfig
from voicepipe.ingress.access import find_agent

_FILLERS = str.maketrans("", "", SEPARATORS)
Route = TypeVar("Route", bound=RouteConfig)


class NoRoute(Refused):
    """No route of the configuration fits this call."""

    reason = "no_route"


def placed(
    pop: PopApi, kind: PhoneKind, called: str, asked: str = "", *, domain: str = "", trunk: str = "", owner: str = ""
) -> tuple[Tenant, Agent]:
    """The tenant and the agent of a phone call: the route's agent, or else the one that was `asked` for, or the
    default. `owner`: as in `tenant_of`. Raises NoRoute, UnknownModel."""
    route = route_for(pop.config.routes, RouteConfig(), kind=kind, called=called, domain=domain, trunk=trunk)
    tenant = tenant_of(route, pop.config, owner)
    return tenant, find_agent(pop, tenant, route.agent or asked or None)


def route_for(
    routes: Sequence[Route], none: Route, *, kind: PhoneKind, called: str, domain: str = "", trunk: str = ""
) -> Route:
    """The first route that the call fits; an empty one where there are no routes at all. Raises NoRoute."""
    if not routes:
        return none
    route = find(routes, kind=kind, called=called, domain=domain, trunk=trunk)
    if route is None:
        raise NoRoute(f"No route is meant for {called or 'an unknown number'!r} by {kind}: add one to [[routes]].")
    return route


def find(routes: Sequence[Route], *, kind: PhoneKind, called: str, domain: str = "", trunk: str = "") -> Route | None:
    """The first route that the call fits. None: no route fits it."""
    number = plain(called)
    for route in routes:
        if (
            route.kind in ("", kind)
            and route.trunk in ("", trunk)
            and route.domain.lower() in ("", domain.lower())
            and _fits(number, plain(route.called))
        ):
            return route
    return None


def _fits(number: str, called: str) -> bool:
    """Whether `number` matches `called`, where "*" stands for any characters. fnmatch would also give "?" and "[" a
    meaning."""
    return fnmatchcase(number, re.sub(r"[?\[]", r"[\g<0>]", called))


def plain(number: str) -> str:
    """A number or a SIP user in the form in which it is compared: without "sip:", host and parameters, spaces, dashes
    and dots."""
    user = number.strip().lower().removeprefix("sips:").removeprefix("sip:").removeprefix("tel:")
    return user.partition("@")[0].partition(";")[0].translate(_FILLERS)


def tenant_of(route: RouteConfig, config: Config, owner: str = "") -> Tenant:
    """The tenant of a call; where there is only one, it need not be named. Without tenants it is `owner`, the one for
    whom a directory has placed the call here, and otherwise "local"."""
    tenants = {tenant.name: tenant for tenant in config.tenants}
    if not tenants:
        return Tenant(owner or NO_TENANT)
    [name] = [route.tenant] if route.tenant else tenants  # Never a guess among several: `config.check_together`.
    its = tenants[name]
    return Tenant(its.name, its.agents, its.slots)
