"""The stand-in for the language model, in a thread of its own. It serves replies as vLLM does: prompts are read in
between decoding steps."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import torch

from tests.gpu_engines.standins.batching import PREFILLS, Batch
from tests.gpu_engines.standins.device import Device
from voicepipe.bench.load import LATER, TRAFFIC
from voicepipe.sizing.shapes import LlmShape

SLOTS = 32
"""As `max_num_seqs` of our configurations for GPUs."""
UNHEARD = -1
FIRST, WHOLE = TRAFFIC.phrase.tokens, TRAFFIC.reply_tokens
PHRASES = (FIRST, *(FIRST + (WHOLE - FIRST) * n // LATER for n in range(1, LATER + 1)))
"""Tokens of the reply after which each phrase is whole and goes to synthesis."""


@dataclass(slots=True)
class Replies:
    """In ms. The first token and the first phrase are counted from when the words were there, waiting for a slot
    included."""

    first_token: list[float] = field(default_factory=list)
    first_phrase: list[float] = field(default_factory=list)
    token: list[float] = field(default_factory=list)
    running: list[float] = field(default_factory=list)
    """Replies of each decoding step."""


@dataclass(slots=True)
class _Reply:
    asked: float
    """When its words were there."""
    number: int
    """Of the turn."""
    tokens: int = 1


class LanguageLoad:
    """`start` and `stop` a load; nothing runs in between.

    `told`, in the model's thread: when phrases were whole, and for each the turn's number and its place in the reply;
    not of turns with the number UNHEARD.
    """

    def __init__(
        self, device: Device, shape: LlmShape, told: Callable[[float, list[tuple[int, int]]], None] = lambda *_: None
    ) -> None:
        self._vocab, self._batch = shape.vocab, Batch(shape, SLOTS, device)
        self._told = told
        self._over, self._changed = False, threading.Event()
        self._thread = ThreadPoolExecutor(1, "language")
        self._waiting: deque[_Reply] = deque()
        self._replies = Replies()
        self._load: Future[None] = Future()

    def start(self, lead_s: float) -> None:
        """What is asked within `lead_s` is not measured."""
        self._over = False
        self._waiting.clear()
        self._replies = Replies()
        self._load = self._thread.submit(self._serve, time.monotonic() + lead_s)

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

    def _serve(self, start: float) -> None:
        running: dict[int, _Reply] = {}
        """By slot."""
        while not self._over:
            self._changed.clear()
            free = [slot for slot in range(SLOTS) if slot not in running]
            room = min(len(free), len(self._waiting))
            if count := next((prompts for prompts in PREFILLS if prompts <= room), 0):
                turns = [self._waiting.popleft() for _ in range(count)]
                self._batch.admit(torch.randint(self._vocab, (count, TRAFFIC.new_tokens)), free[:count])
                now = time.monotonic()
                self._replies.first_token += [1000 * (now - turn.asked) for turn in turns if turn.asked >= start]
                running |= dict(zip(free, turns, strict=False))
            elif running:
                running = self._stepped(running, start)
            elif not self._over:
                self._changed.wait()

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
        if phrases := [(reply.number, PHRASES.index(reply.tokens)) for reply in whole if reply.number != UNHEARD]:
            self._told(now, phrases)
        self._replies.first_phrase += [
            1000 * (now - reply.asked) for reply in whole if reply.tokens == FIRST and reply.asked >= start
        ]
        return {slot: reply for slot, reply in running.items() if reply.tokens < WHOLE}
