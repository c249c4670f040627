"""One telephone. Its trunk knows several directories, as by an SRV record or by its origination URIs, and asks the next
one if the first says nothing or 503 (RFC 3263). Then it calls the contacts in their order (RFC 3261). It holds the call
for a while, asks whether it lives, and hangs up."""

import asyncio
import re
import socket
import time
from urllib.parse import urlsplit

from tests.fleet.caller import BEAT_S, Caller
from tests.fleet.history import HUNG_UP, LET_IN, LOST, Candidate, Placement, Try
from tests.fleet.network import SIP_PORT
from tests.ingress.sip.peer import Phone, Said

CONTACT = re.compile(r"<(sip:[^@>]+@([0-9.:]+)[^>]*)>;q=([0-9.]+)")


class PhoneCaller(Caller[Phone]):
    """As `Caller`, by SIP."""

    elsewhere = (503,)

    async def _asked(self, placement: Placement) -> None:
        phone = await _telephone(urlsplit(self._order.directories[placement.directory]).hostname or "")
        try:
            async with asyncio.timeout(self._order.patience_s):
                answer = await phone.dial(uri="sip:front-desk@voicepipe.example;user=phone")
        except TimeoutError as error:
            placement.code = type(error).__name__
            return
        finally:
            phone.close()
        placement.retry_after = answer.header("retry-after")
        placement.status = 200 if answer.code == 302 else answer.code
        placement.code = "" if answer.code == 302 else answer.start
        contacts = sorted(filter(None, map(CONTACT.match, answer.all("contact"))), key=lambda one: -float(one[3]))
        placement.candidates = [
            Candidate(self._order.pops.get(one[2].partition(":")[0], ""), one[2]) for one in contacts
        ]
        self._tokens = [one[1] for one in contacts]

    async def _try(self, placement: Placement, candidate: Candidate, token: str) -> Phone | None:
        """`token`: the contact's address."""
        placement.tries.append(one := Try(candidate.pop, time.monotonic()))
        phone = await _telephone(candidate.url.partition(":")[0])
        answer: Said | None = None
        try:
            async with asyncio.timeout(self._order.patience_s):
                answer = await phone.dial(uri=token)
            one.status, one.why = (LET_IN, "") if answer.code == 200 else (answer.code, answer.start)
        except TimeoutError as error:
            one.why = type(error).__name__
        one.ended = time.monotonic()
        if one.status == LET_IN:
            self.call.pop, self.call.began = candidate.pop, one.ended
            return phone
        phone.close()
        return None

    async def _hold(self, line: Phone) -> None:
        call, order = self.call, self._order
        until = time.monotonic() + self._hold_s
        try:
            while (left := until - time.monotonic()) > 0 and not self._hang_up.is_set():
                async with asyncio.timeout(order.alive_s):
                    lives = await line.insisting(line.request("OPTIONS"), "OPTIONS", len(line.said))
                if lives.code != 200:
                    call.end, call.ended = LOST, time.monotonic()
                    return
                call.events += 1
                await self._pause(min(BEAT_S, left))
            async with asyncio.timeout(order.alive_s):
                call.end = HUNG_UP if (await line.hang_up()).code == 200 else LOST
        except TimeoutError:
            call.end = LOST  # Over UDP that is how it shows.
        finally:
            call.ended = call.ended or time.monotonic()
            line.close()


async def _telephone(server: str) -> Phone:
    """One that calls this address, from the address that leads there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((server, SIP_PORT))
        host = str(probe.getsockname()[0])
    phone = Phone((server, SIP_PORT), host=host)
    await phone.open()
    return phone
