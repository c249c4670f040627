"""Reads a server's files again while it runs (SIGHUP), and has it use what can be used at once.

All or nothing: files with an error change nothing, and the server's health says so until they are read without one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Generic

from voicepipe.base.errors import ConfigError
from voicepipe.config.changes import Change, Served, change
from voicepipe.config.rereads import Rereads

logger = logging.getLogger(__name__)
PAUSE_S = 0.1
"""Seconds between two reloads: signals in masses take no time from calls."""


class Reloader(Generic[Served]):
    """Reads the files again whenever it is asked to, one reload at a time: requests that come during one make one more.

    `read` reads the files as at the start, for a server that runs with another configuration. `check` checks a
    configuration as at the start. Both raise ConfigError, and are called in a thread. `used` is told which
    configuration is used now. Each reload takes place within a context of `during`."""

    def __init__(
        self,
        read: Callable[[Served], Served],
        check: Callable[[Served], None],
        used: Callable[[Served], None] = lambda config: None,
        during: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._read = read
        self._check = check
        self._used = used
        self._during = during
        self._asked = asyncio.Event()
        self._own: Served | None = None

    def ask(self) -> None:
        """Read the files again, soon. What is asked before `run` waits for it."""
        self._asked.set()

    async def run(self, own: Served, rereads: Rereads[Served], take: Callable[[Served], Awaitable[None]]) -> None:
        """Reload when asked, until cancelled. `own`: the configuration in use, as the files had it. `take` makes the
        server use another one; it raises ConfigError, and then nothing has changed."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            with self._during():
                rereads.problem = await self._reload(self._own or own, take)
            await asyncio.sleep(PAUSE_S)

    async def _reload(self, own: Served, take: Callable[[Served], Awaitable[None]]) -> str:
        """Returns the problem for which nothing has changed; empty: there was none."""
        try:
            found = await asyncio.to_thread(self._changed, own)
            await take(found.config)
        except ConfigError as error:
            logger.error("the files are not used, and nothing has changed: %s", error)
            return f"the files are not used: {error}"
        except Exception as error:  # Whatever it is, the server goes on as it was.
            logger.exception("the files could not be read again")
            return f"the files could not be read again: {error!r}"
        self._own = found.config
        self._used(found.config)
        if found.waiting:
            logger.warning("%s changed: takes effect after a restart", ", ".join(found.waiting))
        logger.info("the files were read again, with keys, certificates and agents; changed: %s",
                    ", ".join(found.taken) or "no other key")  # fmt: skip
        return ""

    def _changed(self, own: Served) -> Change[Served]:
        """Raises ConfigError: the files have an error, or what of them is used at once needs a restart with the
        rest."""
        found: Change[Served] | None = None
        try:
            fresh = self._read(own)
            found = change(own, fresh)
            if found.waiting:
                self._check(found.config)
        except ValueError as error:
            raise ConfigError(f"{error}; restart to use the files") from None
        except ConfigError as error:
            if found is None:
                raise
            waiting = ", ".join(found.waiting)
            raise ConfigError(f"{error} (without {waiting}, which need a restart: restart to use the files)") from None
        return found
