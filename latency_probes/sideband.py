"""Calls whose sound does not travel in Realtime events: by the events it is known to which reply it belongs.

They come on the call's data channel, or by a WebSocket beside the call (`?call_id=`).
"""

import time
from collections import deque
from contextlib import suppress
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from latency_probes.failed_call import refused, unreachable
from latency_probes.realtime import DIAL_S, endpoint, tls_of
from latency_probes.timeline import AUDIBLE_DBFS, Event, Timeline, frame_levels
from voicepipe.audio import Pcm

EARLY_S = 0.1
"""By so much a reply's sound may overtake the event that announces it."""
UNANNOUNCED = "unannounced"
"""The item of what sounds before the first event has come: a sideband is there only after the call."""


class Ascriber:
    """Ascribes the sound of a call to its items. `item`: of what sounds before the events say it; "": wait for them."""

    def __init__(self, timeline: Timeline, item: str = "") -> None:
        self._timeline = timeline
        self._early: deque[tuple[Pcm, float]] = deque()
        self._item = item
        """The reply that sounds."""
        self._response = ""

    def sound(self, pcm: Pcm, arrived: float) -> None:
        """int16[n] at 24 kHz, received at the monotonic second `arrived`."""
        if self._item:
            return self._timeline.add_audio(self._item, self._response, pcm, arrived)
        self._early.append((pcm, arrived))
        while self._early[0][1] < arrived - EARLY_S:
            self._early.popleft()

    def event(self, message: str | bytes, arrived: float) -> str:
        """One Realtime event; its type."""
        data = msgspec.json.decode(message, type=dict[str, Any])
        event = Event(data["type"], arrived, data)
        self._timeline.add_event(event)
        match event.type:
            case "response.output_item.added" if event.data["item"]["type"] == "message":
                self._item, self._response = event.data["item"]["id"], event.data["response_id"]
                self._overtaken(arrived)
            case "output_audio_buffer.stopped" | "output_audio_buffer.cleared":
                self._item = ""
        return event.type

    def _overtaken(self, now: float) -> None:
        """Sound that was faster than the event that announces it."""
        early = [(pcm, arrived) for pcm, arrived in self._early if arrived >= now - EARLY_S]
        self._early.clear()
        while early and frame_levels(early[0][0]).max(initial=-96) <= AUDIBLE_DBFS:
            early.pop(0)
        for pcm, arrived in early:
            self._timeline.add_audio(self._item, self._response, pcm, arrived)


async def beside(url: str, call_id: str, key: str) -> ClientConnection:
    """A sideband of the call at the server behind `url`, which gets its events from now on. Raises ProbeError."""
    address = f"{endpoint(url, '').partition('?')[0]}?call_id={call_id}"
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        return await connect(
            address,
            ssl=tls_of(address),
            additional_headers=headers,
            compression=None,
            max_size=None,
            proxy=None,
            open_timeout=DIAL_S,
        )
    except InvalidStatus as error:
        raise refused(address, error.response.status_code, error.response.body) from error
    except (OSError, TimeoutError, WebSocketException) as error:
        raise unreachable(address, error) from error


async def listen(socket: ClientConnection, ascriber: Ascriber) -> None:
    """Take the events of a sideband until the call is over."""
    with suppress(ConnectionClosed):
        async for message in socket:
            ascriber.event(message, time.monotonic())
