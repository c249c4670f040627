"""What is refused, in the log: a line each, but no more than can be read, since strangers may ask for ever."""

import logging
import time

from voicepipe.base.token_bucket import Rate
from voicepipe.ingress.throttle import Throttle

LINES = Rate(20, 0.5), Rate(100, 5)
"""Refusals that are told one by one, of one address and of all: scanners try every number there is."""


class RefusalLog:
    """Of one door. `requests` is what they are called when there are too many to be told."""

    def __init__(self, logger: logging.Logger, requests: str) -> None:
        self._logger = logger
        self._requests = requests
        self._lines = Throttle(*LINES)

    def tell(self, source: str, text: str, *args: object) -> None:
        """Log `text` of `source`, or that there were more of them. A source is a client's IP address, or else the name
        that a client gave."""
        now = time.monotonic()
        if self._lines.admits(source, now):
            self._logger.warning(text, *args)
        elif news := self._lines.news(now):
            self._logger.warning("%s are refused in masses, and not all of them told: also %s", self._requests, news)
