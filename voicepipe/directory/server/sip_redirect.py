"""A directory's SIP server: it redirects telephones to PoPs, and takes no calls itself (RFC 3261, 8.3).

Who may ask is decided as at a PoP: a trunk by its address, a user by password. The PoP that they call then decides it
again by the same rules. A redirected call brings no token: three of those would make the answer longer than a datagram
may be, and carriers leave parameters out that they do not know.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address

from voicepipe.base.errors import Draining, NoPop, Reason
from voicepipe.base.networks import network_of
from voicepipe.base.places import Place, place_of
from voicepipe.base.tasks import TaskGroup
from voicepipe.config.credentials import sip_passwords
from voicepipe.config.directory_config import DirectoryConfig
from voicepipe.config.rereads import Use
from voicepipe.directory.directory import Directory, Placement
from voicepipe.directory.server.call_placement import DirectoryRules, PhonePlacing
from voicepipe.directory.server.relay_drain import RelayDrain
from voicepipe.ingress.loopback_only import sip_host
from voicepipe.ingress.sip.addresses import contact, placement_of
from voicepipe.ingress.sip.sip_access import Challenge, SipAccess, SipRefusal, SipSender
from voicepipe.ingress.sip.sip_endpoint import SipEndpoint, of_no_call, refusal
from voicepipe.ingress.sip.stack import IncomingRequest
from voicepipe.rtp.sdp_text import SdpError, parse

logger = logging.getLogger(__name__)

CAPABILITIES = (("Allow", "INVITE, ACK, CANCEL, OPTIONS, REGISTER"),)


class SipRedirect:
    """The SIP server of a directory. Between `open` and `close` it answers. `tasks` are those that choose PoPs. Raises
    ConfigError."""

    def __init__(self, rules: DirectoryRules, directory: Directory, relay_drain: RelayDrain, tasks: TaskGroup) -> None:
        config, sip = rules.config, rules.config.sip
        self._directory = directory
        self._relay_drain = relay_drain
        self._tasks = tasks
        self._placement = PhonePlacing(rules, directory)
        self._gateways = _gateways(config)
        self._access = SipAccess(sip)
        bind = sip_host(sip, config.http), sip.port
        self._endpoint = SipEndpoint(bind, "", self._access, self._requested, self._turned_away)
        rules.rereads.join(self._reread)

    def _reread(self, config: DirectoryConfig) -> Use:
        """Trunks, users and passwords, as `Rereads` has it."""
        passwords = sip_passwords(config.sip.users)

        def use() -> None:
            self._access.become(config.sip, passwords)
            self._gateways = _gateways(config)

        return use

    def open(self) -> None:
        """Listen. Raises ConfigError."""
        self._endpoint.open()
        self._endpoint.resume()

    def close(self) -> None:
        """Receive and send nothing more."""
        self._endpoint.close()

    def _turned_away(self, reason: Reason, status: int) -> None:
        self._directory.refused("sip", reason)

    def _requested(self, request: IncomingRequest) -> None:
        try:
            if request.to_tag:
                raise of_no_call()
            self._endpoint.admit(request, CAPABILITIES, self._invite, self._takes_calls)
        except Exception as error:
            self._refuse(request, error)

    def _refuse(self, request: IncomingRequest, error: Exception) -> None:
        """Answer with an error. Raises `error` if it is none that a client causes."""
        answer = refusal(error)
        if answer is None:
            raise error
        if isinstance(error, NoPop) and error.why == "no_match":  # Of this number alone: the server is well.
            answer = SipRefusal(480, "Temporarily Unavailable", answer.why, reason=answer.reason)
        self._endpoint.refuse(request, answer)
        if request.method == "INVITE" and not isinstance(answer, Challenge) and not isinstance(error, NoPop):
            self._turned_away(answer.reason, answer.code)

    def _takes_calls(self) -> bool:
        return self._directory.takes_calls("sip") and not self._relay_drain.has_begun

    def _invite(self, invite: IncomingRequest, who: SipSender) -> None:
        self._tasks.create_task(self._invited(invite, who))

    async def _invited(self, invite: IncomingRequest, who: SipSender) -> None:
        try:
            uri, placement = invite.uri.uri, await self._placed(invite, who)
            self._redirect(invite, [contact(uri, offer.url.removeprefix("sip:"), placement.placement_id)
                                    for offer in placement.offers])  # fmt: skip
        except Exception as error:
            try:
                self._refuse(invite, error)
            except Exception:
                logger.exception("an INVITE from %s failed", invite.source[0])
                invite.respond(500, "Server Internal Error")

    def _redirect(self, invite: IncomingRequest, contacts: list[str]) -> None:
        """Redirect to the PoPs, the best first: RFC 3261 has them tried in the order of q (20.10)."""
        headers = [("Contact", f"<{uri}>;q={1 - rank / 10:.1f}") for rank, uri in enumerate(contacts)]
        invite.respond(302, "Moved Temporarily", headers)

    async def _placed(self, invite: IncomingRequest, who: SipSender) -> Placement:
        """The PoPs for the call. Raises NoRoute, NoPop, SipError, UnsupportedBody, Draining."""
        if self._relay_drain.has_begun:
            raise Draining("This directory is being stopped and places no new calls; ask another one.")
        uri, gateway = invite.uri, self._gateways.get(who.trunk)
        if placement_of(uri):  # It would be sent here again, and each time take another slot for a while.
            raise SipRefusal(
                482, "Loop Detected", "it was told to call a PoP, and calls here: has it an outbound proxy?"
            )
        network = network_of_sound(invite.sdp or "", invite.source[0])
        return await self._placement.place(
            "sip", uri.user, gateway, domain=uri.domain, trunk=who.trunk, network=network
        )


def _gateways(config: DirectoryConfig) -> dict[str, Place | None]:
    """The place of each trunk's media gateway."""
    return {trunk.name: place_of(trunk.place) for trunk in config.sip.trunks}


def network_of_sound(sdp: str, source: str) -> str:
    """The network from which the call's sound will come: by its SDP, or where that has a private address, or there is
    none, the one from which its INVITE came."""
    with suppress(SdpError, ValueError):
        *_, said = next((one.connection.split() for one in parse(sdp) if one.kind == "audio"), [""])
        named = ip_address(said)
        if named.is_global or not (named.is_unspecified or ip_address(source).is_global):
            return network_of(said)
    return network_of(source)


@asynccontextmanager
async def redirecting(rules: DirectoryRules, directory: Directory, relay_drain: RelayDrain) -> AsyncIterator[None]:
    """Answer telephones within the context, if `sip.port` is set. Raises ConfigError."""
    if not rules.config.sip.port:
        yield
        return
    async with TaskGroup() as tasks:
        redirect = SipRedirect(rules, directory, relay_drain, tasks)
        redirect.open()
        try:
            yield
        finally:
            redirect.close()
