"""A PoP tells how far its callers are, and directories choose by it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aioice.ice
import msgspec
import pytest
import websockets

from tests.directory.fleets import FRANKFURT, LONG_S, OPERATOR, SIGNER, fleet, public_key, served, settings
from tests.directory.reports import FRANKFURT as FRANKFURT_PLACE
from tests.directory.reports import LONDON, TOKYO, VIRGINIA, report
from tests.directory.server.test_provider_webhooks import CALL, providers, site, streamed
from tests.ingress.sip.peer import Phone
from tests.ingress.webrtc.peer import Peer
from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe.base import networks
from voicepipe.base.places import Place
from voicepipe.call_api import Grant
from voicepipe.config import Config
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.directory.directory import Directory, Placement
from voicepipe.directory.router import WantedCall
from voicepipe.directory.server.sip_redirect import network_of_sound
from voicepipe.directory.subjects import REPORTS, ROUND_TRIPS, RoundTrip, of_pop
from voicepipe.ingress.frames import tcp_rtt_ms
from voicepipe.rtp import rtcp, rtp_session

HOME = "198.51.100.0/24"
HERE, NETWORK = "127.0.0.2", "127.0.0.0/24"
"""Where the callers of these tests are. 127.0.0.1 would be a proxy's."""


@pytest.fixture(autouse=True)
def all_but_this_machine_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "is_public", lambda ip: str(ip) not in ("127.0.0.1", "::1"))


class Site:
    """A directory that hears PoPs in Frankfurt, London, Virginia and Tokyo."""

    def __init__(self) -> None:
        self.now = 100.0
        self.directory = Directory(MemoryBus(), SIGNER, clock=lambda: self.now)
        self.report()

    def report(self) -> None:
        places = {"fra": FRANKFURT_PLACE, "lhr": LONDON, "iad": VIRGINIA, "nrt": TOKYO}
        for pop, place in places.items():
            made = report(round(self.now), region=pop, place=place, slots=100, kinds=("websocket", "sip", "twilio"))
            self.directory.take(BusMessage(f"vp.pop.{pop}.report", msgspec.json.encode(made)))

    def tells(self, pop: str, ms: float, network: str = HOME) -> None:
        self.directory.take(BusMessage(of_pop(ROUND_TRIPS, pop), msgspec.json.encode(RoundTrip(network, ms))))

    async def place(self, place: Place | None, network: str = HOME, **changes: Any) -> str:
        """The PoP that a caller is sent to."""
        wanted = WantedCall(kind="websocket", place=place, **changes)
        await self.directory.place(wanted, Grant(id="", tenant="acme", network=network))
        return self.directory.placed[-1].pop

    @property
    def by(self) -> str:
        """How it is known how far that PoP is."""
        return self.directory.placed[-1].by


# --- what directories make of it


async def test_what_a_pop_tells_counts_for_the_next_call_of_the_network_and_no_other() -> None:
    site = Site()
    assert await site.place(LONDON) == "lhr"
    site.tells("lhr", 45.0)
    site.tells("fra", 22.0)
    assert await site.place(LONDON) == "fra"
    assert site.by == "learned"
    assert await site.place(LONDON, network="198.51.101.0/24") == "lhr"
    assert await site.place(LONDON, network="") == "lhr"
    assert site.by == "distance"


async def test_what_the_caller_measured_counts_more() -> None:
    site = Site()
    site.tells("fra", 22.0)
    assert await site.place(LONDON, rtt_ms={"lhr": 9.0}) == "lhr"
    assert site.by == "probe"


async def test_a_network_whose_place_is_wrong_is_found_by_few_calls_and_one_at_a_time() -> None:
    """They say that they are in Tokyo, and are in Paris."""
    site, true_ms = Site(), {"fra": 22.0, "lhr": 24.0, "iad": 98.0, "nrt": 240.0}
    assert await site.place(TOKYO) == "nrt"
    site.tells("nrt", true_ms["nrt"])
    went = []
    for _ in range(3):
        went.append(await site.place(TOKYO))
        assert await site.place(TOKYO) in {"nrt", *went[:-1]}, "one call finds out, the others wait for what it tells"
        site.tells(went[-1], true_ms[went[-1]])
    assert true_ms[await site.place(TOKYO)] <= 24.0
    assert await site.place(TOKYO, network="203.0.113.0/24") == "nrt"


async def test_ten_minutes_later_the_distance_counts_again() -> None:
    site = Site()
    site.tells("fra", 12.0)
    site.tells("lhr", 45.0)
    assert await site.place(LONDON) == "fra"
    site.now += 600.0
    site.report()
    assert await site.place(LONDON) == "lhr"


@pytest.mark.parametrize(
    "said", [b"{}", b"\xff", b'{"network": "x", "ms": -1}', b'{"network": "", "ms": 1}', b"[" * 9999]
)
async def test_what_is_no_round_trip_is_not_kept(said: bytes) -> None:
    site = Site()
    site.directory.take(BusMessage(of_pop(ROUND_TRIPS, "fra"), said))
    assert site.directory.learned(10) == []


async def test_where_all_pops_are_one_process_nothing_is_learned() -> None:
    bus = MemoryBus()
    both = [Directory(bus, SIGNER, learns=learns) for learns in (True, False)]
    async with asyncio.TaskGroup() as group:
        jobs = [group.create_task(one.run()) for one in both]
        await asyncio.sleep(0)
        await bus.publish(of_pop(ROUND_TRIPS, "lhr"), msgspec.json.encode(RoundTrip(HOME, 1.0)))  # Nobody knows it.
        await bus.publish(of_pop(REPORTS, "fra"), msgspec.json.encode(report()))
        await bus.publish(of_pop(ROUND_TRIPS, "fra"), msgspec.json.encode(RoundTrip(HOME, 1.0)))
        await until(lambda: both[0].learned(1))
        assert [trip.pop for trip in both[0].learned(9)] == ["fra"]
        for job in jobs:
            job.cancel()
    assert both[1].learned(1) == []


# --- from which network a call comes


@pytest.mark.parametrize(
    ("sdp", "source", "network"),
    [
        ("c=IN IP4 8.8.4.4", "9.9.9.9", "8.8.4.0/24"),
        ("c=IN IP4 192.168.1.20", "9.9.9.9", "9.9.9.0/24"),
        ("c=IN IP4 192.168.1.20", "192.168.7.1", "192.168.1.0/24"),
        ("c=IN IP4 0.0.0.0", "192.168.7.1", "192.168.7.0/24"),
        ("c=IN IP4 phone.example.com", "9.9.9.9", "9.9.9.0/24"),
        ("s=-", "9.9.9.9", "9.9.9.0/24"),
        ("c=", "9.9.9.9", "9.9.9.0/24"),
        ("no SDP", "9.9.9.9", "9.9.9.0/24"),
    ],
    ids=["public", "behind a NAT", "both private", "on hold", "a name", "no c=", "an empty one", "none"],
)
def test_the_network_of_a_phone_call_is_where_its_sound_will_come_from(sdp: str, source: str, network: str) -> None:
    text = "" if sdp == "no SDP" else f"v=0\r\n{sdp}\r\nm=audio 4000 RTP/AVP 0\r\n"
    assert network_of_sound(text, source) == network
    assert network_of_sound("v=0\r\nc=IN IP4 8.8.4.4\r\n", source).startswith(source[:4]), "no audio"


@pytest.fixture
def public(tmp_path: Path) -> str:
    return public_key(tmp_path)


@asynccontextmanager
async def one_pop(public: str, **tables: Any) -> AsyncIterator[tuple[Directory, Config, MemoryBus]]:
    """A PoP behind a directory, and no proxy."""
    config, bus = settings("fra", public, FRANKFURT, **tables), MemoryBus()
    async with asyncio.timeout(LONG_S), fleet(config, bus=bus) as (directory, _):
        yield directory, config, bus


async def granted(directory: Directory, **grant: Any) -> Any:
    return (await directory.place(WantedCall(kind="websocket"), Grant(id="", tenant="acme", **grant))).offers[0]


@pytest.mark.e2e
async def test_the_directory_names_the_network_of_who_asks_and_an_operator_sees_what_it_learned(public: str) -> None:
    async with one_pop(public, http={"proxies": []}) as (directory, _, bus), served(directory, bus) as at:
        async with at.client() as client:
            await client.post("/v1/calls", json={}, headers={"X-Forwarded-For": "203.0.113.9"})
            directory.take(
                BusMessage(of_pop(ROUND_TRIPS, "fra"), msgspec.json.encode(RoundTrip("203.0.113.0/24", 44.0)))
            )
            await client.post("/v1/calls", json={}, headers={"X-Forwarded-For": "203.0.113.77"})
            assert [(placed.by, placed.near_ms - 40) for placed in directory.placed][-1] == ("learned", 44)
            assert (await client.get("/v1/round-trips")).status_code == 401
        async with at.client(OPERATOR) as operator:
            (row,) = (await operator.get("/v1/round-trips")).json()["round_trips"]
            assert (row["network"], row["pop"], row["ms"]) == ("203.0.113.0/24", "fra", 44.0)


# --- what PoPs tell


async def hung_up(directory: Directory) -> list[tuple[str, str]]:
    """Network and PoP of what was told of a call that is over by now."""
    await until(lambda: directory.pops()[0].condition.calls == 0)
    await asyncio.sleep(0.1)
    return [(trip.network, trip.pop) for trip in directory.learned(10)]


needs_tcp_info = pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="needs Linux")


@pytest.mark.e2e
@needs_tcp_info
async def test_a_call_by_websocket_tells_a_round_trip_when_it_is_over(public: str) -> None:
    async with one_pop(public) as (directory, config, _):
        offer = await granted(directory, network=NETWORK)
        caller = await websockets.connect(f"{offer.url}?token={offer.token}", local_addr=(HERE, 0))
        await caller.recv()
        assert directory.learned(10) == []
        await caller.close()
        await until(lambda: directory.learned(10))
        [trip] = directory.learned(10)
        assert (trip.network, trip.pop) == (NETWORK, "fra")
        assert 0 <= trip.ms < 100


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("network", "local"),
    [("203.0.113.0/24", HERE), (NETWORK, "127.0.0.1"), ("", HERE)],
    ids=["somebody asked in the caller's place", "by a proxy", "relayed, or without a directory"],
)
async def test_a_call_that_came_another_way_than_it_was_asked_for_tells_nothing(
    public: str, network: str, local: str
) -> None:
    async with one_pop(public) as (directory, _, _):
        offer = await granted(directory, network=network)
        caller = await websockets.connect(f"{offer.url}?token={offer.token}", local_addr=(local, 0))
        await caller.recv()
        await until(lambda: directory.pops()[0].condition.calls == 1)
        await caller.close()
        assert await hung_up(directory) == []


@pytest.mark.e2e
async def test_a_websocket_that_a_directory_relays_has_no_network(public: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its way leads through the directory, wherever its caller is: neither is anything learned from it, nor does what
    was learned count for it."""
    async with one_pop(public) as (directory, _, bus), served(directory, bus) as at:
        placing, networks = directory.place, list[str]()

        async def place(wanted: WantedCall, grant: Grant, session: bytes = b"") -> Placement:
            networks.append(grant.network)
            return await placing(wanted, grant, session)

        monkeypatch.setattr(directory, "place", place)
        headers = {"Authorization": "Bearer k-acme", "X-Forwarded-For": "203.0.113.9"}
        async with websockets.connect(f"ws{at.url.removeprefix('http')}/v1/realtime", additional_headers=headers):
            assert networks == [""]
        async with at.client() as client:
            await client.post("/v1/calls", json={}, headers=headers)
        assert networks == ["", "203.0.113.0/24"]


@pytest.mark.e2e
async def test_a_call_by_webrtc_tells_what_rtcp_measures(public: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its offer was passed on by the directory, and its sound goes straight to the PoP."""
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda use_ipv4, use_ipv6: [HERE])
    monkeypatch.setattr(rtp_session, "REPORT_S", 0.3)
    async with one_pop(public) as (directory, _, bus), served(directory, bus) as at, at.client() as client:
        peer = Peer()
        sent = {"Content-Type": "application/sdp", "X-Forwarded-For": HERE}
        answer = await client.post("/v1/realtime/calls", content=await peer.offer(), headers=sent)
        assert answer.status_code == 201
        await peer.answered(answer.text)
        await peer.saw("session.created")
        await asyncio.sleep(4)  # aiortc reports once a second or so, and tells what it has heard of ours.
        await peer.close()
        await until(lambda: directory.learned(10))
        assert await hung_up(directory) == [(NETWORK, "fra")]


class ReportingPhone(Phone):
    """It answers each of the PoP's reports at once, as RFC 3550 has it."""

    async def reports(self) -> None:
        """Until cancelled. RTCP comes by RTP's port."""
        seen = 0
        while True:
            for data, source in self.packets[seen:]:
                seen += 1
                if data[1] == 200:
                    told = rtcp.parse(data)
                    assert told.sender
                    block = rtcp.RtcpReport(told.ssrc, 0.0, 0, 1, 0, rtcp.middle(told.sender.ntp), 0.0)
                    self.rtp.sendto(rtcp.build(self.ssrc, "phone", None, (block,), goodbye=False), source)
            await asyncio.sleep(0.01)


@pytest.mark.e2e
async def test_a_call_by_sip_tells_what_rtcp_measures(public: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rtp_session, "REPORT_S", 0.3)
    trunk = {"name": "carrier", "addresses": ["127.0.0.0/8"]}
    async with one_pop(public, sip={"port": free_port(), "trunks": [trunk]}) as (directory, config, _):
        async with ReportingPhone(("127.0.0.1", config.sip.port), host=HERE) as phone:
            answer = await phone.dial(body=phone.sdp() + "a=rtcp-mux\r\n")
            assert answer.code == 200
            reporting = asyncio.create_task(phone.reports())
            phone.media_of(answer)
            phone.say()
            await asyncio.sleep(2)
            await phone.hang_up()
            reporting.cancel()
            await until(lambda: directory.learned(10))
            assert await hung_up(directory) == [(NETWORK, "fra")]


@pytest.mark.e2e
@needs_tcp_info
async def test_a_stream_of_a_provider_tells_how_far_the_provider_is(
    public: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory looks it up by the provider's name as well."""
    monkeypatch.setattr(networks, "is_public", lambda ip: True)
    configs = [
        msgspec.structs.replace(config, http=msgspec.structs.replace(config.http, proxies=("::1",)))
        for config in providers(public, monkeypatch)
    ]
    async with asyncio.timeout(LONG_S), site(configs) as here:
        directory = here.directories[0].directory
        async with streamed(await here.twilio()):
            await until(lambda: sum(here.calls) == 1)
        await until(lambda: directory.learned(10))
        [trip] = directory.learned(10)
        assert (trip.network, trip.pop) == ("twilio", "fra")
        await here.twilio({**CALL, "CallSid": "CA2"})
        assert directory.placed[-1].by == "learned"


def test_no_round_trip_is_told_of_what_is_no_connection() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        assert tcp_rtt_ms(datagrams) is None
    assert tcp_rtt_ms(datagrams) is None
    assert tcp_rtt_ms(None) is None
