"""The stand-in for the language model under open-loop turns, in a thread of its own, as vLLM serves them: prompts
are read in between decoding steps."""

import random
import threading
import time
from collections import deque
from dataclasses import dataclass, field

import torch

from voicepipe.bench.engines.load import TRAFFIC
from voicepipe.bench.engines.shapes import TINY_LLM
from voicepipe.bench.engines.standins.batching import PREFILLS, Batch
from voicepipe.bench.engines.standins.device import CudaLane, Device
from voicepipe.sizing.shapes import LLMS

MODEL = "llama-3.1-8b"
SLOTS = 32
"""As `max_num_seqs` of our configuration for GPUs should be."""


class Yielding(Device):
    """Everything on it goes behind what is urgent."""

    def lane(self, *, urgent: bool) -> CudaLane:
        return super().lane(urgent=False)


@dataclass(slots=True)
class Replies:
    """In ms. The first token and the first phrase are counted from the turn's end, waiting for a slot included."""

    first_token: list[float] = field(default_factory=list)
    first_phrase: list[float] = field(default_factory=list)
    token: list[float] = field(default_factory=list)
    running: list[float] = field(default_factory=list)
    """Replies of each decoding step."""


class LanguageLoad:
    """`start` and `stop` a load; nothing runs in between."""

    def __init__(self, device: Device, tiny: bool) -> None:
        self._shape = TINY_LLM if tiny else LLMS[MODEL]
        self._batch = Batch(self._shape, SLOTS, device)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._replies = Replies()
        self._error: Exception | None = None

    def start(self, rate: float, lead_s: float, seed: int) -> None:
        """`rate`: turns a second."""
        self._over.clear()
        self._replies, self._error = Replies(), None
        self._thread = threading.Thread(target=self._run, args=(rate, lead_s, seed), name="language", daemon=True)
        self._thread.start()

    def stop(self) -> Replies:
        """Raises what torch raised."""
        self._over.set()
        if self._thread:
            self._thread.join(20)
            if self._thread.is_alive():
                raise TimeoutError("the language model's thread does not end")
        if self._error:
            raise self._error
        return self._replies

    def _run(self, rate: float, lead_s: float, seed: int) -> None:
        try:
            self._serve(rate, time.monotonic() + lead_s, random.Random(seed))
        except Exception as error:
            self._error = error

    def _serve(self, rate: float, start: float, rng: random.Random) -> None:
        waiting: deque[float] = deque()
        running: dict[int, tuple[float, int]] = {}
        """By slot: when the turn ended, tokens so far."""
        due = time.monotonic() + rng.expovariate(rate)
        while not self._over.is_set():
            while due <= time.monotonic():
                waiting.append(due)
                due += rng.expovariate(rate)
            free = [slot for slot in range(SLOTS) if slot not in running]
            room = min(len(free), len(waiting))
            if count := next((prompts for prompts in PREFILLS if prompts <= room), 0):
                turns = [waiting.popleft() for _ in range(count)]
                self._batch.admit(torch.randint(self._shape.vocab, (count, TRAFFIC.new_tokens)), free[:count])
                now = time.monotonic()
                self._replies.first_token += [1000 * (now - turn) for turn in turns if turn >= start]
                running |= {slot: (turn, 1) for slot, turn in zip(free, turns, strict=False)}
            elif running:
                running = self._stepped(running, start)
            else:
                self._over.wait(max(0.0, due - time.monotonic()))

    def _stepped(self, running: dict[int, tuple[float, int]], start: float) -> dict[int, tuple[float, int]]:
        """A token more of each; those that are whole are gone."""
        began = time.monotonic()
        self._batch.step(tuple(running))
        now = time.monotonic()
        if began >= start:
            self._replies.token.append(1000 * (now - began))
            self._replies.running.append(float(len(running)))
        grown = {slot: (turn, tokens + 1) for slot, (turn, tokens) in running.items()}
        self._replies.first_phrase += [
            1000 * (now - turn) for turn, tokens in grown.values() if tokens == TRAFFIC.phrase_tokens and turn >= start
        ]
        return {slot: reply for slot, reply in grown.items() if reply[1] < TRAFFIC.reply_tokens}
