"""Delivers webhooks about calls that have ended: at least once, also when a receiver or the PoP was down meanwhile."""

import asyncio
import logging
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import msgspec
from msgspec.structs import replace

from voicepipe.base.secret_source import SecretSource
from voicepipe.base.takeover import TakeoverParts
from voicepipe.base.tasks import TaskGroup
from voicepipe.base.trust import for_http, refusal
from voicepipe.base.web_answer import PLAIN
from voicepipe.records import signing
from voicepipe.records.store import Delivery, Spool, due, found, reading, spool
from voicepipe.records.writer import RecordWriter

logger = logging.getLogger(__name__)

OF_EACH, AT_ONCE = 4, 256
"""Requests in progress, to one receiver and in all: one that hangs keeps no other waiting."""
TIMEOUT_S = 15.0
FIRST_S, LONGEST_S = 2.0, 600.0
"""Seconds between attempts: the first pause, and the longest; each is twice the one before."""
GIVE_UP_S = 3 * 86_400
IDLE_S = 60.0
LAST_S = 5.0
"""Seconds for which a PoP that ends goes on; what is left is for its next start."""
TRY_LATER = (408, 425, 429)
"""Statuses below 500 after which the same request may succeed later."""
EVENT = "call.ended"
RECORDS = "records"
"""What is handed over of records (`TakeoverParts`)."""


class Deliveries:
    """Delivers webhooks about calls that have ended to their receivers: at least once, also when a receiver or the PoP
    was down meanwhile. `path`: the PoP's records; `ca`: as `trust.trusting`; `parts`: once another process has taken
    over, that one delivers."""

    def __init__(
        self, path: Path, writer: RecordWriter, loop: asyncio.AbstractEventLoop, ca: str, parts: TakeoverParts
    ) -> None:
        self._ca = ca
        self._parts = parts
        self.spool = Spool(0, None, None)
        """The deliveries that are due, as last read."""
        self.failed = 0
        """Attempts that failed, since the start."""
        self._path = path
        self.writer = writer
        self._under_way = set[str]()
        """Ids of deliveries in progress."""
        self._woken = asyncio.Event()
        self._idle = asyncio.Event()
        """Set when nothing is left that can be delivered now."""
        self.loop = loop

    def wake(self) -> None:
        """There is a new delivery. May be called from any thread."""
        self.loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._woken.set()
        self._parts.changed(RECORDS)

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with await asyncio.to_thread(self._client) as client, TaskGroup() as tasks:
            while True:
                self._woken.clear()
                for delivery in [] if self._parts.is_handed_over else await asyncio.to_thread(self._due):
                    if delivery.id not in self._under_way and len(self._under_way) < AT_ONCE:
                        self._under_way.add(delivery.id)
                        self._idle.clear()
                        tasks.create_task(self._try(client, delivery))
                if not self._under_way and not self._woken.is_set():
                    self._idle.set()
                wait_s = IDLE_S
                if self.spool.next_due is not None and not self._under_way and not self._parts.is_handed_over:
                    wait_s = self.spool.next_due - time.time()
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(0.05, min(IDLE_S, wait_s))):
                        await self._woken.wait()

    async def last(self) -> None:
        """Wait until nothing is left that can be delivered now, for `LAST_S` at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                await self.writer.carried_out(lambda store: None)  # What is written meanwhile is the last.
                self._idle.clear()
                self._woken.set()
                await self._idle.wait()

    async def _try(self, client: httpx.AsyncClient, delivery: Delivery) -> None:
        try:
            await self._deliver(client, delivery)
        except Exception as error:  # The others are delivered.
            logger.error("%s: nobody can be told of it: %r", delivery.call, error, exc_info=error)
            await self._later(delivery, f"{type(error).__name__}", refused=True)
        finally:
            self._under_way.discard(delivery.id)
            self._woken.set()

    def _client(self) -> httpx.AsyncClient:
        # In a thread: reading the certificate store takes 20-50 ms. Redirects could lead to hosts nobody configured.
        headers = {**PLAIN, "Content-Type": "application/json", "User-Agent": "voicepipe"}
        return httpx.AsyncClient(follow_redirects=False, timeout=TIMEOUT_S, headers=headers, verify=for_http(self._ca))

    def _due(self) -> list[Delivery]:
        with reading(self._path) as db:
            self.spool = spool(db)
            return due(db, time.time(), OF_EACH) if self.spool.waiting else []

    async def _deliver(self, client: httpx.AsyncClient, delivery: Delivery) -> None:
        body = await asyncio.to_thread(self._body, delivery)
        if body is None:
            return await self.writer.carried_out(lambda store: store.given_up(delivery))
        problem, refused = await self._sent(client, delivery, body)
        if not problem:
            return await self.writer.carried_out(lambda store: store.delivered(delivery))
        await self._later(delivery, problem, refused)

    async def _later(self, delivery: Delivery, problem: str, refused: bool) -> None:
        """Try again later, unless that was done for long enough."""
        self.failed += 1
        age_s = time.time() - delivery.since
        if age_s > GIVE_UP_S:
            logger.error("%s: %s was not told of it in %d h and never will be: %s", delivery.call, _host(delivery.url),
                         age_s // 3600, problem)  # fmt: skip
            return await self.writer.carried_out(lambda store: store.given_up(delivery))
        pause_s = min(LONGEST_S, FIRST_S * 2 ** min(delivery.tries, 16))
        level = logging.INFO if delivery.tries else logging.WARNING
        logger.log(level, "%s: %s was not told of it: %s; again in %g s", delivery.call, _host(delivery.url), problem,
                   pause_s)  # fmt: skip
        later = replace(delivery, due=time.time() + pause_s, tries=delivery.tries + 1, refused=refused)
        return await self.writer.carried_out(lambda store: store.put_off(later))

    def _body(self, delivery: Delivery) -> bytes | None:
        with reading(self._path) as db:
            record = found(db, delivery.call, None)
        if record is None:
            return None
        at = datetime.fromtimestamp(delivery.since, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return msgspec.json.encode({"type": EVENT, "timestamp": at, "data": record})

    async def _sent(self, client: httpx.AsyncClient, delivery: Delivery, body: bytes) -> tuple[str, bool]:
        """Send one delivery. Returns the error (empty: none), and whether the receiver refuses this request."""
        try:
            key = await asyncio.to_thread(signing.key_in, SecretSource.of_text(delivery.secret))
        except ValueError as error:
            return str(error), False
        signed = signing.headers(key, delivery.id, time.time(), body)
        try:
            async with (
                asyncio.timeout(TIMEOUT_S),
                client.stream("POST", delivery.url, content=body, headers=signed) as answer,
            ):
                status = answer.status_code
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, TimeoutError) as error:
            return refusal(error) or f"it does not answer ({type(error).__name__})", False
        if answer.is_success:
            return "", False
        return f"it answers with HTTP status {status}", 400 <= status < 500 and status not in TRY_LATER


def _host(url: str) -> str:
    """The host of an address, whose other parts may be secret."""
    return urlsplit(url).hostname or "its receiver"
