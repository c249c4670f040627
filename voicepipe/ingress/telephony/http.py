"""The doors for Twilio and Telnyx: each is there if its secret is configured, and otherwise there is nothing (404)."""

import logging

from starlette.routing import BaseRoute

from voicepipe.call_api import PopApi
from voicepipe.config import telnyx_key, twilio_token
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.telephony.telnyx import Telnyx
from voicepipe.ingress.telephony.telnyx_api import TelnyxApi
from voicepipe.ingress.telephony.twilio import Twilio

logger = logging.getLogger(__name__)

SIGNED = ("/twilio/", "/telnyx/")
"""Every request below these paths is checked by its signature, or there is nothing there."""


def routes(pop: PopApi, calls: Calls) -> list[BaseRoute]:
    """What is open by the configuration. Raises ConfigError."""
    found: list[BaseRoute] = []
    if token := twilio_token(pop.config):
        found += Twilio(pop, calls, token).routes()
    if key := telnyx_key(pop.config):
        found += Telnyx(pop, calls, TelnyxApi(pop.config.telnyx, key)).routes()
    if found and not pop.config.tenants:
        # Most proxies say that they are one (`LocalOnly`); nginx does not unless it is told to.
        logger.warning(
            "there are no [[tenants]], so whatever a proxy passes on to this server may need no key: let it pass %s "
            "alone, or give keys",
            " and ".join(SIGNED),
        )
    return found


async def tidy_up(pop: PopApi, calls: Calls) -> None:
    """End Telnyx's calls that an earlier run of this PoP has left behind. Raises CommandFailed."""
    application, key = pop.config.telnyx.application_id, telnyx_key(pop.config)
    if application and key:
        await Telnyx(pop, calls, TelnyxApi(pop.config.telnyx, key)).end_left_behind(application)
