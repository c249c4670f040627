"""The stand-in for the language model under open-loop turns, in a thread of its own, as vLLM serves them: prompts
are read in between decoding steps."""

import math
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import torch

from tests.gpu_engines.standins.batching import PREFILLS, Batch
from tests.gpu_engines.standins.device import Device
from tests.gpu_engines.standins.llama import TINY
from voicepipe.bench.load import LATER, TRAFFIC
from voicepipe.sizing.shapes import LLMS

MODEL = "llama-3.1-8b"
SLOTS = 32
"""As `max_num_seqs` of our configurations for GPUs."""
FIRST, WHOLE = TRAFFIC.phrase.tokens, TRAFFIC.reply_tokens
PHRASES = (FIRST, *(FIRST + (WHOLE - FIRST) * n // LATER for n in range(1, LATER + 1)))
"""Tokens of the reply after which each phrase is whole and goes to synthesis."""


@dataclass(slots=True)
class Replies:
    """In ms. The first token and the first phrase are counted from the turn's end, waiting for a slot included."""

    first_token: list[float] = field(default_factory=list)
    first_phrase: list[float] = field(default_factory=list)
    token: list[float] = field(default_factory=list)
    running: list[float] = field(default_factory=list)
    """Replies of each decoding step."""


@dataclass(slots=True)
class _Reply:
    ended: float
    """When the turn ended."""
    number: int = -1
    """Of the turn whose phrases are told; -1: nobody listens."""
    tokens: int = 1


class LanguageLoad:
    """`start` and `stop` a load; nothing runs in between.

    `told`, in the model's thread: when phrases were whole, and for each the turn's number and its place in the reply.
    """

    def __init__(
        self, device: Device, tiny: bool, told: Callable[[float, list[tuple[int, int]]], None] = lambda *_: None
    ) -> None:
        self._shape = TINY if tiny else LLMS[MODEL]
        self._batch = Batch(self._shape, SLOTS, device)
        self._told = told
        self._over, self._changed = False, threading.Event()
        self._thread = ThreadPoolExecutor(1, "language")
        self._waiting: deque[_Reply] = deque()
        self._replies = Replies()
        self._load: Future[None] = Future()

    def start(self, rate: float, lead_s: float, seed: int) -> None:
        """`rate`: turns a second that end by themselves; 0: those alone that `ask` tells of."""
        self._over = False
        self._waiting.clear()
        self._replies = Replies()
        self._load = self._thread.submit(self._serve, rate, time.monotonic() + lead_s, random.Random(seed))

    def ask(self, turn: int, now: float) -> None:
        """The words of this turn are there since `now`; from any thread, while a load runs."""
        self._waiting.append(_Reply(now, turn))
        self._changed.set()

    def stop(self) -> Replies:
        """Raises what torch raised."""
        self._over = True
        self._changed.set()
        self._load.result(timeout=20)
        return self._replies

    def _serve(self, rate: float, start: float, rng: random.Random) -> None:
        running: dict[int, _Reply] = {}
        """By slot."""
        due = time.monotonic() + rng.expovariate(rate) if rate else math.inf
        while not self._over:
            self._changed.clear()
            while due <= time.monotonic():
                self._waiting.append(_Reply(due))
                due += rng.expovariate(rate)
            free = [slot for slot in range(SLOTS) if slot not in running]
            room = min(len(free), len(self._waiting))
            if count := next((prompts for prompts in PREFILLS if prompts <= room), 0):
                turns = [self._waiting.popleft() for _ in range(count)]
                self._batch.admit(torch.randint(self._shape.vocab, (count, TRAFFIC.new_tokens)), free[:count])
                now = time.monotonic()
                self._replies.first_token += [1000 * (now - turn.ended) for turn in turns if turn.ended >= start]
                running |= dict(zip(free, turns, strict=False))
            elif running:
                running = self._stepped(running, start)
            elif not self._over:
                self._changed.wait(min(1.0, max(0.0, due - time.monotonic())))  # `due` may be infinite

    def _stepped(self, running: dict[int, _Reply], start: float) -> dict[int, _Reply]:
        """A token more of each; those that are whole are gone."""
        began = time.monotonic()
        self._batch.step(tuple(running))
        now = time.monotonic()
        if began >= start:
            self._replies.token.append(1000 * (now - began))
            self._replies.running.append(float(len(running)))
        for reply in running.values():
            reply.tokens += 1
        whole = [reply for reply in running.values() if reply.tokens in PHRASES]
        if phrases := [(reply.number, PHRASES.index(reply.tokens)) for reply in whole if reply.number >= 0]:
            self._told(now, phrases)
        self._replies.first_phrase += [
            1000 * (now - reply.ended) for reply in whole if reply.tokens == FIRST and reply.ended >= start
        ]
        return {slot: reply for slot, reply in running.items() if reply.tokens < WHOLE}
