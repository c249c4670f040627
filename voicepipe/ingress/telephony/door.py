"""Who is not let in at one provider's door: what the provider has not signed, in the log as long as that can be read."""

import logging

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response

from voicepipe.ingress.refusals import Refusals
from voicepipe.ingress.telephony.signatures import Forbidden

logger = logging.getLogger(__name__)


class Door:
    """`kind`: "twilio" or "telnyx"."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._refusals = Refusals(logger, f"{kind}: requests")

    def forbid(self, connection: HTTPConnection, what: str, error: Forbidden) -> Response:
        """The answer to `what`, "a webhook" or "a stream"; why it is refused is for the log alone."""
        source = connection.client.host if connection.client else ""
        self._refusals.tell(source, "%s: %s is refused: %s", self._kind, what, error)
        return PlainTextResponse("Forbidden", 403)
