"""Hangs up Telnyx's calls, and tries until it is done: one that is not hung up holds its caller in silence, and is
billed.

A command may fail because Telnyx, or the way there, does not work for a moment. No later event would have us try again.
"""

import asyncio
import logging

from voicepipe.ingress.telephony.telnyx_api import CommandFailed, TelnyxApi

logger = logging.getLogger(__name__)

FIRST_S, LONGEST_S = 1.0, 30.0
"""Seconds between the first attempt and the second; each pause is twice as long as the one before, up to the other."""
WITHIN_S = 600.0
"""Seconds for which attempts are made."""
MOST = 1000
"""Most calls for which attempts are repeated; for more only the first attempt is made."""


class HangUps:
    """Hangs up Telnyx's calls, and tries again where that fails. `close` it once nothing more is to be hung up."""

    def __init__(self, api: TelnyxApi) -> None:
        self._api = api
        self._again: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    async def hang_up(self, call_id: str) -> None:
        """Returns after the first attempt. If that fails, the log says so, and others follow."""
        try:
            await self._api.command(call_id, "hangup")
        except CommandFailed as error:
            again = not self._closed and len(self._again) < MOST
            then = "it is tried again" if again else "it is not tried again"
            logger.error("telnyx: %s is not hung up, and %s: %s", call_id, then, error)
            if again and call_id not in self._again:
                self._again[call_id] = task = asyncio.create_task(self._repeat(call_id))
                task.add_done_callback(lambda _: self._again.pop(call_id, None))

    def over(self, call_id: str) -> None:
        """Telnyx reports that this call has ended."""
        if task := self._again.pop(call_id, None):
            task.cancel()

    async def close(self) -> None:
        """Try no more. At its next start a PoP hangs up what is left (`telnyx_boot.py`)."""
        self._closed = True
        if left := set(self._again.values()):
            logger.error("telnyx: not hung up when the server ended: %s", ", ".join(self._again))
            for task in left:
                task.cancel()
            await asyncio.wait(left)

    async def _repeat(self, call_id: str) -> None:
        loop = asyncio.get_running_loop()
        until, pause_s, why = loop.time() + WITHIN_S, FIRST_S, ""
        while loop.time() + pause_s <= until:
            await asyncio.sleep(pause_s)
            pause_s = min(LONGEST_S, 2 * pause_s)
            try:
                await self._api.command(call_id, "hangup")
            except CommandFailed as error:
                why = str(error)
            else:
                logger.info("telnyx: %s is hung up now", call_id)
                return
        logger.error("telnyx: %s is not hung up after %g s, and not tried again: %s", call_id, WITHIN_S, why)
