"""The doors for Twilio and Telnyx: each is there if its secret is configured, and otherwise there is nothing (404)."""

from starlette.routing import BaseRoute

from voicepipe.call_api import PopApi
from voicepipe.config import telnyx_key, twilio_token
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.telephony.telnyx import Telnyx
from voicepipe.ingress.telephony.telnyx_api import TelnyxApi
from voicepipe.ingress.telephony.twilio import Twilio

SIGNED = ("/twilio/", "/telnyx/")
"""Every request below these paths is checked by its signature, or there is nothing there."""


def routes(pop: PopApi, calls: Calls) -> list[BaseRoute]:
    """What is open by the configuration. Raises ConfigError."""
    found: list[BaseRoute] = []
    if token := twilio_token(pop.config):
        found += Twilio(pop, calls, token).routes()
    if key := telnyx_key(pop.config):
        found += Telnyx(pop, calls, TelnyxApi(pop.config.telnyx, key)).routes()
    return found
