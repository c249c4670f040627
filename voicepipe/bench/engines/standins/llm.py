"""The stand-in for vLLM: one thread that takes prompts in between decoding steps. Sampling is greedy; no text."""

import asyncio
import random
import threading
from collections import deque
from collections.abc import AsyncGenerator

import torch

from voicepipe.bench.engines.load import TRAFFIC
from voicepipe.bench.engines.standins.batching import PREFILLS, Batch
from voicepipe.bench.engines.standins.device import Device
from voicepipe.sizing.shapes import LlmShape


class _Reply:
    """One request: `tokens` of it have been made; `told` says so on the event loop, or what went wrong."""

    def __init__(self) -> None:
        self.tokens = 0
        self.aborted = False
        self.told: asyncio.Queue[int | Exception] = asyncio.Queue()


class TorchLlm:
    """Serves `slots` replies at a time; more wait, first come, first served."""

    def __init__(self, name: str, shape: LlmShape, slots: int, device: Device) -> None:
        self.name = f"stand-in: {name} in torch, {device.named(device.bf16)}"
        self.weights = shape.weights
        self._batch = Batch(shape, slots, device)
        self._vocab = shape.vocab
        self._loop = asyncio.get_running_loop()
        self._changed = threading.Condition()
        self._waiting: deque[_Reply] = deque()
        self._running: dict[int, _Reply] = {}
        """By slot; the thread's own."""
        self._closed = False
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._serve, name="llm", daemon=True)
        self._thread.start()

    async def reply(self, call: int) -> AsyncGenerator[int, None]:
        """How many tokens there are, at each one. Raises what torch raises."""
        reply = _Reply()
        with self._changed:
            if self._failed:
                raise self._failed
            self._waiting.append(reply)
            self._changed.notify()
        try:
            count = 0
            while count < TRAFFIC.reply_tokens:
                told = await reply.told.get()
                if isinstance(told, Exception):
                    raise told
                count = told
                yield count
        finally:
            reply.aborted = True

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _serve(self) -> None:
        try:
            while not self._closed:
                self._running = {slot: reply for slot, reply in self._running.items() if not reply.aborted}
                if more := self._admitted() or self._stepped():
                    self._loop.call_soon_threadsafe(_tell, more, None)
        except Exception as error:
            with self._changed:
                self._failed = error
                lost = [*self._running.values(), *self._waiting]
            self._loop.call_soon_threadsafe(_tell, lost, error)

    def _admitted(self) -> list[_Reply]:
        """Read as many of the waiting prompts as can be read in one go. Waits where there is nothing at all to do."""
        with self._changed:
            while not (self._waiting or self._running or self._closed):
                self._changed.wait()
            free = [slot for slot in range(self._batch.slots) if slot not in self._running]
            room = min(len(free), len(self._waiting))
            count = next((prompts for prompts in PREFILLS if prompts <= room), 0)
            replies = [self._waiting.popleft() for _ in range(count)]
        if replies:
            prompts = torch.tensor(
                [[random.randrange(self._vocab) for _ in range(TRAFFIC.new_tokens)] for _ in replies]
            )
            self._batch.admit(prompts, free[:count])
            self._running |= zip(free, replies, strict=False)
            self._one_more(free[:count])
        return replies

    def _stepped(self) -> list[_Reply]:
        """A token more of each that runs."""
        running = dict(self._running)
        if running:
            self._batch.step(tuple(running))
            self._one_more(running)
        return list(running.values())

    def _one_more(self, slots: "list[int] | dict[int, _Reply]") -> None:
        """A slot is free again once its reply is whole."""
        for slot in slots:
            self._running[slot].tokens += 1
            if self._running[slot].tokens == TRAFFIC.reply_tokens:
                del self._running[slot]


def _tell(replies: list[_Reply], error: Exception | None) -> None:
    for reply in replies:
        reply.told.put_nowait(error or reply.tokens)
