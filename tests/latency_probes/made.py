"""Timelines made by hand: block i is sent at second i * 0.02, and every message arrives when the test says."""

import json
from typing import Any

import numpy as np

from latency_probes.clips import Speech, Utterance
from latency_probes.plan import Over, Turn
from latency_probes.records import Said
from latency_probes.timeline import BLOCK, FRAME, WIRE_RATE, Event, Timeline
from tests.latency_probes.fake_server import tone
from voicepipe.audio import Pcm

SENT = [block * 0.02 for block in range(500)]
HOURS = "We are open Tuesday to Sunday."


def silence(seconds: float) -> Pcm:
    return np.zeros(int(seconds * WIRE_RATE), np.int16)


def utterance(intent: str = "hours", text: str = "what are your opening hours", before: str = "") -> Utterance:
    return Utterance("finished-001-heart", "finished", "heart", text, intent, "quiet", "", before)


def said(asked: Utterance | None = None, resumed: float = 0.0, until: float = 9.0, over: bool = False) -> Said:
    """Said from second 1 to 2, with voice from 1.1 to 1.9; something over the reply has voice from second 4 to 5."""
    resumed_at = int(resumed * WIRE_RATE) - 50 * BLOCK if resumed else 0
    pcm = np.concatenate([silence(0.1), tone(0.8), silence(0.1)])
    if resumed:
        pcm[resumed_at - 10 * BLOCK : resumed_at] = 0
    speech = Speech(pcm, (int(0.1 * WIRE_RATE), int(0.9 * WIRE_RATE)), resumed_at)
    turn = Turn("finished", asked or utterance(), Over("overlay-hum-001") if over else None)
    if not over:
        return Said(turn, speech, 50 * BLOCK, until)
    return Said(turn, speech, 50 * BLOCK, until, 200 * BLOCK, Speech(tone(1.0), (0, WIRE_RATE)))


class Made:
    """A timeline under construction."""

    def __init__(self) -> None:
        self.line = Timeline(sent=list(SENT))

    def event(self, at: float, type: str, **fields: Any) -> "Made":
        self.line.add_event(Event(type, at, {"type": type, **fields}))
        return self

    def heard(self, at: float, text: str) -> "Made":
        return self.event(at, "conversation.item.input_audio_transcription.completed", item_id="u", transcript=text)

    def reply(self, at: float, pcm: Pcm, text: str = HOURS, name: str = "1", paced: bool = False) -> "Made":
        """Audio that arrives at once, or 20 ms at a time in real time."""
        self.event(at, "response.created", response={"id": f"r{name}"})
        self.event(at, "response.output_audio_transcript.done", item_id=f"a{name}", transcript=text)
        for start in range(0, pcm.size, BLOCK if paced else pcm.size):
            block = pcm[start : start + BLOCK] if paced else pcm
            self.line.add_audio(f"a{name}", f"r{name}", block, at + start / WIRE_RATE)
        return self

    def done(self, at: float, status: str = "completed", record: Any = None, name: str = "1") -> "Made":
        metadata = None if record is None else {"voicepipe.turn": json.dumps(record)}
        return self.event(at, "response.done", response={"id": f"r{name}", "status": status, "metadata": metadata})


assert FRAME * 2 == BLOCK
