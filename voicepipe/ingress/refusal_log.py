"""Logs refusals, a line each, at a rate that people can read, since strangers may send requests for ever."""

import logging
import time

from voicepipe.base.token_bucket import Rate
from voicepipe.ingress.throttle import Throttle

LINES = Rate(20, 0.5), Rate(100, 5)
"""Refusals that are logged one by one, of one address and of all: scanners try every number there is."""


class RefusalLog:
    """Logs the requests of one kind that are refused, at a limited rate. `requests` names them where there are too many
    to log."""

    def __init__(self, logger: logging.Logger, requests: str) -> None:
        self._logger = logger
        self._requests = requests
        self._lines = Throttle(*LINES)

    def log(self, source: str, text: str, *args: object) -> None:
        """Log `text` about `source`, or that there were more refusals of it. A source is a client's IP address, or else
        the name that a client gave."""
        now = time.monotonic()
        if self._lines.admits(source, now):
            self._logger.warning(text, *args)
        elif summary := self._lines.summary(now):
            self._logger.warning("%s are refused in masses, and not all of them told: also %s", self._requests, summary)
