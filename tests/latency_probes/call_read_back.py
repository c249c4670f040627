"""A call of two minutes, listened to: `python -m tests.latency_probes.call_read_back [--wav FILE]`.

People's prompts and natural voices' questions take turns in one call
to a fresh PoP. Whisper then reads what the caller heard of each reply, and holes are told: moments in the middle of a
reply at which nothing was there to play.
"""

import argparse
import asyncio
import wave
from pathlib import Path

import numpy as np
from faster_whisper import WhisperModel

from latency_probes import clips
from latency_probes.conversation import converse
from latency_probes.own_server import own_server
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from latency_probes.sound import rng_for
from latency_probes.timeline import WIRE_RATE, Reply, Timeline
from latency_probes.transcripts import errors, words
from tests.latency_probes.read_back import Reader
from tests.support.read_back import MODEL
from voicepipe.audio import Pcm
from voicepipe.base.errors import ProbeError
from voicepipe.engines.weights import hub

LASTS_S = 120.0
A_TURN_S = 8.0
"""A prompt or a question, and the reply to it."""
HOLE_S = 0.02
"""A packet: what is shorter, a jitter buffer hides."""


def turns(seed: int) -> tuple[Turn, ...]:
    """People's prompts and natural voices' questions, in turn, for as long as the call is to last."""
    rng, kinds = rng_for(seed, "read back"), (clips.HUMAN, "finished")
    each = [rng.permutation(np.array(clips.load((kind,)), object)) for kind in kinds]
    drawn = [
        Turn(kind, said[n])
        for n in range(round(LASTS_S / A_TURN_S / 2))
        for kind, said in zip(kinds, each, strict=True)
    ]
    return tuple(drawn)


async def hold(url: str, seed: int) -> Timeline:
    """The call. Raises ProbeError: it failed."""
    websocket = url.replace("http", "ws", 1) + "/v1/realtime"
    record = await converse(RealtimeCaller(websocket, "quiet", seed), CallPlan(0, "quiet", turns(seed)), seed)
    if record.failure:
        raise ProbeError(record.failure)
    return record.timeline


def completed(line: Timeline) -> list[Reply]:
    """Replies that were spoken to their end."""
    done = {event.data["response"]["id"]: event.data["response"]["status"] for event in line.of_type("response.done")}
    return [reply for reply in line.replies.values() if reply.chunks and done.get(reply.response_id) == "completed"]


def played(line: Timeline, reply: Reply) -> Pcm:
    """What the caller heard of it, holes included."""
    begins, last = reply.chunks[0].plays, reply.chunks[-1]
    return line.played(begins, round((last.plays - begins) * WIRE_RATE) + last.pcm.size)


def holes(reply: Reply) -> list[float]:
    """How long each lasted, in ms."""
    ends = [chunk.plays + chunk.pcm.size / WIRE_RATE for chunk in reply.chunks]
    gaps = [chunk.plays - end for chunk, end in zip(reply.chunks[1:], ends, strict=False)]
    return [1000 * gap for gap in gaps if gap > HOLE_S]


def keep(sound: Pcm, file: Path) -> None:
    with wave.open(str(file), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(WIRE_RATE)
        out.writeframes(sound.tobytes())


def main() -> None:
    cli = argparse.ArgumentParser(prog="python -m tests.latency_probes.call_read_back")
    cli.add_argument("--wav", type=Path, help="file for what the caller heard")
    cli.add_argument("--seed", type=int, default=1)
    options = cli.parse_args()
    with own_server() as url:
        line = asyncio.run(hold(url, options.seed))
    if not (replies := completed(line)):
        raise ProbeError("no reply was spoken to its end")
    reader = Reader(WhisperModel(str(hub.local(MODEL)), device="cpu", compute_type="int8", cpu_threads=1))
    wrong = total = 0
    for reply in replies:
        said, heard = words(reply.text), reader.read(played(line, reply))
        wrong, total = wrong + (missed := errors(said, words(heard))), total + len(said)
        print(f"{missed} of {len(said)} wrong; holes of {holes(reply)} ms: {reply.text!r} was read as {heard!r}")
    all_holes = [hole for reply in replies for hole in holes(reply)]
    seconds = line.sent[-1] - line.sent[0]
    share = f"{wrong} of {total} words wrong ({100 * wrong / total:.1f} %)"
    print(f"{seconds:.0f} s, {len(replies)} replies: {share}, {len(all_holes)} holes")
    if options.wav:
        keep(line.played(line.sent[0], round(seconds * WIRE_RATE)), options.wav)


if __name__ == "__main__":
    main()
