"""SCTP and data channels of one peer: aiortc's, behind a guard. The only file that knows its SCTP's insides (1.16.0).

aiortc trusts its peer. What it would cost is named here, and `tests/rtp/test_sctp.py` shows each:

- *Packets* whose lengths lie, or with hundreds of chunks that each want an answer: `sctp_packet.is_fit`.
- *Gaps.* For every chunk aiortc sorts all that came out of turn, and its window binds nobody. Here one is dropped that
  is further ahead than `MOST_AHEAD`, or finds the window closed, as by a receiver without room: it will be sent again.
- *Fragments.* It searches all that wait for the rest of their message with every chunk, and keeps them without limit:
  they are counted (`MOST_WAITING`) and weighed (`WINDOW`), and a message longer than `message_bytes` is told to
  `on_overlong` before all of it is here.
- *Messages that nobody has read yet* count against the window as well (`reserve`, `release`): a peer is held up, not
  hung up.
- *SACKs* whose gap blocks name four thousand million chunks, or what was never sent.
- *INIT and COOKIE-ECHO* after there is an association (it would begin anew), or again and again before.
- *FORWARD-TSN* makes a stream of each number it names: partial reliability is not offered, and not taken.
- *Streams and channels* without number: `MOST_STREAMS`, `MOST_CHANNELS`.
- *Whatever comes after an ABORT*: aiortc would let the peer begin anew.
- *What it asserts* of its peer, or cannot decode, ends a message or a packet here and not the connection's task.

How much of the processor's time a peer's packets may take is decided before they come here (`ice.py`).
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from aiortc import RTCDataChannel, RTCDtlsTransport, RTCSctpTransport
from aiortc.rtcsctptransport import (
    DATA_CHANNEL_OPEN,
    SCTP_DATA_FIRST_FRAG,
    SCTP_TSN_MODULO,
    WEBRTC_DCEP,
    Chunk,
    CookieEchoChunk,
    DataChunk,
    ForwardTsnChunk,
    InitChunk,
    SackChunk,
)

from voicepipe.rtp.sctp_packet import is_fit

DataChannel = RTCDataChannel
"""A data channel, which the peer opens, or which we ask it to open."""
LONGEST_MESSAGE = 256 * 1024
"""Bytes of the longest message that can be configured; browsers send no longer ones unless they are allowed to."""
WINDOW = 2 * LONGEST_MESSAGE
"""Bytes of messages that came and were not read."""
MOST_AHEAD = 512
"""Chunks that came out of order: with full ones, of 1,163 bytes, the window is closed before. Of short ones a peer may
have more in flight behind a loss (its congestion window counts bytes): those are sent again, which is slower."""
MOST_WAITING = 1024
"""Chunks that wait for the rest of their message: four messages of the longest kind at once."""
MOST_STREAMS = 1024
"""As many as Chrome offers (kMaxSctpStreams); channels take the lowest numbers that are free (RFC 8832, 6)."""
MOST_CHANNELS = 16
"""Data channels of a peer; the convention has one."""
MOST_GREETINGS = 32
"""INITs and COOKIE-ECHOs: each is sent nine times at most (Max.Init.Retransmits, RFC 9260, 16)."""
MOST_GAPS, MOST_DUPLICATES = 200, 64
"""Entries in a SACK of ours, which has to fit into a packet (28 bytes, and 4 for each: 1,084); the others follow
later."""
LONGEST_LABEL = 1024
"""Bytes of a message that opens a channel."""
MESSAGE_COST = 512
"""Bytes that a message counts in addition to its length: short ones fill memory, too."""
LITTLE = 16 * 1024
"""Bytes of window: a sender that was offered less may have stopped, since it is to leave a small window unused (RFC
9260, 6.1). It waits for a SACK of ours that offers more; without one it only probes now and then."""
_HALF = SCTP_TSN_MODULO // 2


class Sctp(RTCSctpTransport):
    """SCTP and the data channels of one peer, by aiortc, with limits. `message_bytes`: the longest message that is
    accepted, at most `LONGEST_MESSAGE`."""

    def __init__(self, transport: RTCDtlsTransport, message_bytes: int) -> None:
        super().__init__(transport)
        self.on_overlong: Callable[[], None] | None = None
        """Called when a message is longer than that. Nothing that the peer sends is read any more."""
        self.message_bytes = min(message_bytes, LONGEST_MESSAGE)
        self.refused = 0
        """Packets, chunks and messages that no honest peer sends."""
        self.unplaced = 0
        """Chunks for which there is no room, or that are too far ahead: the peer has to send them again."""
        self._advertised_rwnd = WINDOW
        self._local_partial_reliability = False
        self._inbound_streams_max = MOST_STREAMS
        self._greetings = self._reserved = 0
        self._fragments = 0
        """Chunks that wait for the rest of their message."""
        self._is_deaf = False
        self._opened: asyncio.Future[None] | None = None
        """Notifies the peer that it may go on."""

    def reserve(self, message: str | bytes) -> None:
        """A message waits to be read: its bytes are in use."""
        self._reserved += len(message) + MESSAGE_COST

    def release(self, message: str | bytes) -> None:
        """A message was read."""
        was_closed = self._room < LITTLE
        self._reserved -= len(message) + MESSAGE_COST
        if was_closed and self._room >= LITTLE and self._association_state == self.State.ESTABLISHED:
            self._opened = asyncio.ensure_future(self._tell_room())

    def drop(self) -> None:
        """End whatever `stop` has left: timers, channels, listeners, messages that were never sent."""
        self._set_state(self.State.CLOSED)
        self._data_channel_queue.clear()  # They know their channels, which know us.

    @property
    def placed(self) -> int | None:
        """The last chunk (its TSN) of those that came without a gap; None: none yet."""
        return self._last_received_tsn

    @property
    def _room(self) -> int:
        return self._advertised_rwnd - self._reserved

    async def _tell_room(self) -> None:
        with suppress(ConnectionError):
            await self._send_sack()

    # --- aiortc's, in the order in which a packet takes them

    async def _handle_data(self, data: bytes) -> None:
        if not is_fit(data):
            self.refused += 1
            return
        try:
            await super()._handle_data(data)
        except Exception:  # Whatever it takes for granted of a peer: the packet is lost, as others are.
            self.refused += 1

    async def _receive_chunk(self, chunk: Chunk) -> None:
        if self._is_unwelcome(chunk):
            self.refused += 1
        else:
            await super()._receive_chunk(chunk)

    def _is_unwelcome(self, chunk: Chunk) -> bool:
        if self.state == "closed" or isinstance(chunk, ForwardTsnChunk):
            return True
        if isinstance(chunk, InitChunk | CookieEchoChunk):
            self._greetings += 1
            again = isinstance(chunk, InitChunk) and self._association_state == self.State.ESTABLISHED
            return again or self._greetings > MOST_GREETINGS
        return False

    async def _receive_data_chunk(self, chunk: DataChunk) -> None:
        if self._last_received_tsn is None or self._is_deaf:
            return
        self._sack_needed = True  # Also for what is dropped: it has the size of the window.
        ahead = (chunk.tsn - self._last_received_tsn) % SCTP_TSN_MODULO
        is_new = 0 < ahead < _HALF
        if is_new and (ahead > MOST_AHEAD or not self._has_room()):
            self.unplaced += 1
            return
        if chunk.stream_id >= MOST_STREAMS:
            self.refused += 1
            self._mark_received(chunk.tsn)
            return
        before = self._fragments_in(chunk.stream_id)
        await super()._receive_data_chunk(chunk)
        self._fragments += self._fragments_in(chunk.stream_id) - before
        if WINDOW - self._advertised_rwnd > self.message_bytes and self._is_overlong(chunk.stream_id):
            self._end_overlong()

    def _end_overlong(self) -> None:
        if not self._is_deaf:
            self._is_deaf = True
            if self.on_overlong:
                self.on_overlong()

    def _has_room(self) -> bool:
        if self._room > 0 and self._fragments < MOST_WAITING:
            return True
        # A stream that is reset takes what waited in it along, and aiortc does not report that.
        streams = self._inbound_streams.values()
        self._fragments = sum(len(stream.reassembly) for stream in streams)
        self._advertised_rwnd = WINDOW - sum(_size(stream.reassembly) for stream in streams)
        return self._room > 0 and self._fragments < MOST_WAITING

    def _fragments_in(self, stream_id: int) -> int:
        stream = self._inbound_streams.get(stream_id)
        return len(stream.reassembly) if stream else 0

    def _is_overlong(self, stream_id: int) -> bool:
        """Whether the fragments of one message that came without a gap are longer than the limit."""
        size, expected = 0, None
        stream = self._inbound_streams.get(stream_id)
        for chunk in stream.reassembly if stream else ():
            goes_on = chunk.tsn == expected and not chunk.flags & SCTP_DATA_FIRST_FRAG
            size = len(chunk.user_data) + (size if goes_on else 0)
            if size > self.message_bytes:
                return True
            expected = (chunk.tsn + 1) % SCTP_TSN_MODULO
        return False

    def _mark_received(self, tsn: int) -> bool:
        """As in aiortc, except that chunks out of order are not sorted and searched anew for each chunk."""
        assert self._last_received_tsn is not None
        if not 0 < (tsn - self._last_received_tsn) % SCTP_TSN_MODULO < _HALF or tsn in self._sack_misordered:
            self._sack_duplicates.append(tsn)
            return True
        self._sack_misordered.add(tsn)
        while (following := (self._last_received_tsn + 1) % SCTP_TSN_MODULO) in self._sack_misordered:
            self._sack_misordered.remove(following)
            self._last_received_tsn = following
        return False

    async def _receive(self, stream_id: int, pp_id: int, data: bytes) -> None:
        if len(data) > self.message_bytes:  # Made whole by the chunk that made it too long.
            self._end_overlong()
            return
        opens = pp_id == WEBRTC_DCEP and data[:1] == bytes([DATA_CHANNEL_OPEN])
        if opens and (len(data) > LONGEST_LABEL or len(self._data_channels) >= MOST_CHANNELS):
            self.refused += 1
            return
        try:
            await super()._receive(stream_id, pp_id, data)
        except (AssertionError, ValueError):  # A channel that is open already, or was never there; text that is none.
            self.refused += 1

    async def _receive_sack_chunk(self, chunk: SackChunk) -> None:
        newest = self._sent_queue[-1].tsn if self._sent_queue else self._last_sacked_tsn
        unacked = (newest - chunk.cumulative_tsn) % SCTP_TSN_MODULO
        blocks = all(0 < first <= last <= unacked for first, last in chunk.gaps)
        if unacked < _HALF and blocks and sum(last - first + 1 for first, last in chunk.gaps) <= unacked:
            await super()._receive_sack_chunk(chunk)
        else:
            self.refused += 1

    async def _send_chunk(self, chunk: Chunk) -> None:
        if isinstance(chunk, SackChunk):
            chunk.gaps, chunk.duplicates = chunk.gaps[:MOST_GAPS], chunk.duplicates[:MOST_DUPLICATES]
            chunk.advertised_rwnd = max(0, chunk.advertised_rwnd - self._reserved)
        with suppress(ConnectionError):  # DTLS is closed, and aiortc's timers do not know of it yet.
            await super()._send_chunk(chunk)


def _size(chunks: Iterable[DataChunk]) -> int:
    return sum(len(chunk.user_data) for chunk in chunks)
