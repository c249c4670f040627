"""Behind a provider's webhook PoPs are asked one after the other, also where some are dead or draining. The directory's
application answers, in virtual time; PoPs are played."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import httpx
import pytest
from starlette.applications import Starlette

from tests.directory.fleets import FRANKFURT, KEY, SIGNER
from tests.directory.stub_pops import Bounced, tell
from tests.ingress.telephony import telnyx_provider, twilio_provider
from tests.ingress.telephony.telnyx_provider import PUBLIC, SECRET
from tests.ingress.telephony.twilio_provider import TOKEN
from tests.support import virtual_time
from voicepipe.base.places import Place
from voicepipe.config.credentials import OperatorKeys
from voicepipe.config.directory_config import DirectoryConfig, DirectorySection, DirectoryTelnyx, DirectoryTwilio
from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.directory.server.call_placement import DirectoryRules
from voicepipe.directory.server.directory_http import app
from voicepipe.directory.signed_keys import SignedKeys
from voicepipe.ingress.telephony.telnyx_api import TelnyxApi

URL = "http://directory"
CALL = {"CallSid": "CA1", "From": "+1555", "To": "+4930123"}
TWIML = '<Response><Connect><Stream url="wss://pop/twilio/stream"/></Connect></Response>'
TWILIO_S = 15.0
"""So long Twilio waits."""

TAKES, DRAINS, BROKEN, DEAD, SILENT, LOST = 200, 503, 500, 0, -1, -2
"""What a PoP does: an HTTP status; nothing listens; it takes the request and says nothing; the connection is lost."""


@dataclass
class Fleet:
    """PoPs, the nearest first, that the directory believes to be well."""

    does: Sequence[int]
    takes_s: float = 0.0
    """So long one thinks that answers."""
    asked: list[int] = field(default_factory=list)

    async def answer(self, request: httpx.Request) -> httpx.Response:
        """Of the PoP of which this request asks."""
        number = int(request.url.host.removeprefix("pop"))
        self.asked.append(number)
        match self.does[number]:
            case 0:
                raise httpx.ConnectError("refused")
            case -1:
                await asyncio.Event().wait()
            case -2:
                raise httpx.RemoteProtocolError("the connection is lost")
        await asyncio.sleep(self.takes_s)
        return httpx.Response(self.does[number], text=TWIML, headers={"Content-Type": "text/xml"})


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_TWILIO", TOKEN)
    monkeypatch.setenv("TEST_TELNYX", SECRET)


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What the directory itself has Telnyx do: actions and causes."""
    orders: list[tuple[str, str]] = []

    async def order(api: TelnyxApi, call_id: str, action: str, **more: Any) -> None:
        orders.append((action, more.get("cause", "")))

    monkeypatch.setattr(TelnyxApi, "command", order)
    return orders


def directory_of(fleet: Fleet) -> tuple[Starlette, Bounced]:
    """One that believes all of them to be well."""
    bus = MemoryBus()
    directory = Directory(bus, SIGNER, Random(0), clock=lambda: 1000.0)
    for number in range(len(fleet.does)):
        tell(directory, f"pop{number}", url=f"http://pop{number}", kinds=("twilio", "telnyx"),
             place=Place(FRANKFURT[0] + 3 * number, FRANKFURT[1]))  # fmt: skip
    config = DirectoryConfig(
        directory=DirectorySection(place=FRANKFURT),
        twilio=DirectoryTwilio(auth_token_env="TEST_TWILIO"),
        telnyx=DirectoryTelnyx(public_key=PUBLIC, api_key_env="TEST_TELNYX"),
    )
    signed_keys = SignedKeys(bus, SIGNER, {SIGNER.key_id: KEY.public_key()})
    pops = httpx.AsyncClient(transport=httpx.MockTransport(fleet.answer))
    return app(DirectoryRules(config, {}), directory, signed_keys, OperatorKeys(""), pops), Bounced(directory)


async def told(
    served: Starlette, path: str, body: str | bytes, headers: dict[str, str]
) -> tuple[httpx.Response, float]:
    """The answer to a webhook, and after how many seconds it came."""
    began = asyncio.get_running_loop().time()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url=URL) as client:
        answer = await client.post(path, content=body, headers=headers)
    return answer, asyncio.get_running_loop().time() - began


def by_twilio(served: Starlette) -> tuple[str, float]:
    """What it is told to do with a call, and after how many seconds."""
    headers = twilio_provider.signed(f"{URL}/twilio/voice", CALL) | {
        "Content-Type": "application/x-www-form-urlencoded"
    }
    answer, after_s = virtual_time.run(told(served, "/twilio/voice", urlencode(CALL), headers))
    [verb] = ElementTree.fromstring(answer.text)
    return f"{verb.tag} {verb.get('reason', '')}".strip(), after_s


@pytest.mark.parametrize(
    ("does", "verb", "after_s", "asked"),
    [
        ([TAKES, TAKES], "Connect", 0, [0]),
        ([DRAINS, TAKES], "Connect", 0, [0, 1]),
        ([DEAD, TAKES], "Connect", 0, [0, 1]),
        ([SILENT, TAKES], "Connect", 3, [0, 1]),
        ([SILENT, DRAINS, DEAD, TAKES], "Connect", 3, [0, 1, 2, 3]),
        ([SILENT, SILENT, SILENT, TAKES], "Connect", 9, [0, 1, 2, 3]),
        ([SILENT, SILENT, SILENT, SILENT, TAKES], "Reject busy", 12, [0, 1, 2, 3]),
        ([DRAINS, BROKEN, DRAINS, DEAD, TAKES], "Reject busy", 0, [0, 1, 2, 3]),
        ([DRAINS], "Reject busy", 0, [0]),
        ([DEAD], "Reject busy", 0, [0]),
    ],
)  # fmt: skip
def test_the_next_pop_is_asked(does: list[int], verb: str, after_s: float, asked: list[int]) -> None:
    """Four at most, and Twilio has its answer in time."""
    fleet = Fleet(does)
    served, bounced = directory_of(fleet)
    said, took_s = by_twilio(served)
    assert (said, fleet.asked) == (verb, asked)
    assert took_s == pytest.approx(after_s, abs=0.01) and took_s < TWILIO_S
    why = {DRAINS: "refused", BROKEN: "refused", DEAD: "no_answer", SILENT: "no_answer"}
    assert bounced.by == [(f"pop{number}", why[does[number]]) for number in asked if does[number] != TAKES]


def test_a_pop_that_thinks_for_long_but_not_too_long() -> None:
    served, _ = directory_of(Fleet([SILENT, DRAINS, TAKES], takes_s=2.9))
    said, took_s = by_twilio(served)
    assert said == "Connect" and took_s == pytest.approx(3 + 2.9 + 2.9, abs=0.01)


@pytest.mark.parametrize(
    ("does", "orders", "asked"),
    [
        ([SILENT, DRAINS, TAKES], [], [0, 1, 2]),
        ([DRAINS, DRAINS], [("reject", "USER_BUSY")], [0, 1]),
        ([DEAD, DRAINS], [("reject", "USER_BUSY")], [0, 1]),
        ([SILENT, DRAINS], [], [0, 1]),
        ([DRAINS, LOST, DRAINS], [], [0, 1, 2]),
    ],
    ids=["the third takes it", "all drain", "one is not there", "one says nothing", "one hangs up on us"],
)
def test_the_same_by_telnyx(
    does: list[int], orders: list[tuple[str, str]], asked: list[int], ordered: list[tuple[str, str]]
) -> None:
    """A call is rejected unless a PoP may have had it answered."""
    fleet = Fleet(does)
    served, _ = directory_of(fleet)
    said = {"call_control_id": "v3:a", "direction": "incoming", "to": "+4930123", "from": "+1555"}
    answer, _ = virtual_time.run(told(served, "/telnyx/voice", *telnyx_provider.webhook("call.initiated", said)))
    assert (answer.status_code, ordered, fleet.asked) == (200, orders, asked)
