"""The endpoints for Twilio and Telnyx: each exists if its secret is configured; otherwise its path is answered with
404."""

import logging

from starlette.routing import BaseRoute

from voicepipe.call_api import PopApi
from voicepipe.config import Config
from voicepipe.config.credentials import telnyx_key, twilio_token
from voicepipe.config.rereads import Use
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.telephony.signatures import SIGNED
from voicepipe.ingress.telephony.telnyx import Telnyx
from voicepipe.ingress.telephony.telnyx_api import TelnyxApi
from voicepipe.ingress.telephony.twilio import Twilio

logger = logging.getLogger(__name__)


class Providers:
    """The endpoints for the providers that are configured at one PoP. Raises ConfigError."""

    def __init__(self, pop: PopApi, calls: Calls) -> None:
        token, key = twilio_token(pop.config.twilio).value(), telnyx_key(pop.config.telnyx).value()
        self._pop = pop
        self._twilio = Twilio(pop, calls, token) if token else None
        self._telnyx = Telnyx(pop, calls, TelnyxApi(pop.config.telnyx, key)) if key else None
        pop.rereads.join(self._reread)

    def _reread(self, config: Config) -> Use:
        """The providers' secrets, as `Rereads` has it."""
        token, key = twilio_token(config.twilio).value(), telnyx_key(config.telnyx).value()

        def use() -> None:
            if self._twilio:
                self._twilio.token = token
            if self._telnyx:
                self._telnyx.api.authorize(key)

        return use

    def routes(self) -> list[BaseRoute]:
        """The routes of the configured providers."""
        found = [route for provider in (self._twilio, self._telnyx) if provider for route in provider.routes()]
        if found and not self._pop.config.tenants:
            # Most proxies say that they are one (`LocalOnly`); nginx does not unless it is told to.
            logger.warning(
                "there are no [[tenants]], so whatever a proxy passes on to this server may need no key: let it pass "
                "%s alone, or give keys",
                " and ".join(SIGNED),
            )
        return found

    async def tidy_up(self) -> None:
        """End Telnyx's calls that an earlier run of this PoP has left in progress. Raises CommandFailed."""
        if before := self._pop.predecessor:
            await before.gone.wait()  # What goes on there is not left behind.
        if self._pop.takeover_parts.is_handed_over:
            return
        if self._telnyx and (application := self._pop.config.telnyx.application_id):
            await self._telnyx.end_left_behind(application)

    async def close(self) -> None:
        """Stop: no call goes on any more."""
        if self._twilio:
            await self._twilio.close()
        if self._telnyx:
            await self._telnyx.close()
