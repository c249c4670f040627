"""A PoP among others: what it tells directories, and the calls that they send."""

import time
from collections.abc import Callable

from voicepipe.call_api import Grant
from voicepipe.config import Config
from voicepipe.directory.bus import Bus
from voicepipe.directory.report import Condition
from voicepipe.directory.reporter import Reporter
from voicepipe.directory.tokens import Gate, audience
from voicepipe.fleet_keys import key_id, public_key


class Membership:
    """Implements `call_api.Tokens`."""

    def __init__(self, bus: Bus, config: Config, condition: Callable[[], Condition]) -> None:
        self._reporter = Reporter(bus, config.pop.id, condition)
        keys = {key_id(key): key for key in map(public_key, config.fleet.keys)}
        self._gate = Gate(audience(config.pop.id, self._reporter.epoch), keys, time.time)

    async def run(self) -> None:
        """Report until cancelled; then say goodbye."""
        await self._reporter.run()

    def tell(self) -> None:
        """Report now, and not only when the second is over."""
        self._reporter.tell()

    def read(self, token: str) -> Grant:
        return self._gate.read(token)

    def use(self, grant: Grant) -> None:
        self._gate.use(grant)
        self._reporter.began(grant.id)
