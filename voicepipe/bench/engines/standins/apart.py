"""The stand-in for the language model in a process of its own, as vLLM's engine is one."""

import asyncio
import multiprocessing
import os
from collections.abc import AsyncGenerator
from multiprocessing.connection import Connection

from voicepipe.bench.engines.load import BY_LENGTH
from voicepipe.errors import EngineError
from voicepipe.sizing.shapes import LlmShape

WORD = "la "
"""A token's text."""
START_S = 300.0
ENDED = "the stand-in for the language model ended"


class LanguageApart:
    """Starts its process at once; it ends with this one."""

    phrasing = BY_LENGTH

    def __init__(self, name: str, shape: LlmShape, slots: int, device: str) -> None:
        self.name = f"stand-in in a process of its own: {name} in torch"
        self.weights = shape.weights
        spawning = multiprocessing.get_context("spawn")  # a process that knows CUDA cannot be forked
        self._pipe, theirs = spawning.Pipe()
        self._process = spawning.Process(
            target=serve, args=(theirs, name, shape, slots, device), name="language", daemon=True
        )
        self._process.start()
        theirs.close()
        self._asked = 0
        self._replies: dict[int, asyncio.Queue[int | Exception]] = {}

    async def start(self) -> None:
        """Wait until its model is there. Raises EngineError."""
        try:
            async with asyncio.timeout(START_S):
                while not await asyncio.to_thread(self._pipe.poll, 0.2):
                    pass
            told = self._pipe.recv()
        except (EOFError, TimeoutError) as error:
            raise EngineError(f"the stand-in for the language model did not start: {error!r}") from None
        if isinstance(told, Exception):
            raise told
        self.name = told
        asyncio.get_running_loop().add_reader(self._pipe.fileno(), self._came)

    async def reply(self, call: int, *, guess: bool) -> AsyncGenerator[str, None]:
        """Raises EngineError, and what torch raises."""
        self._asked += 1
        number, count = self._asked, 0
        told = self._replies[number] = asyncio.Queue()
        self._send(number, True)
        try:
            while (tokens := await told.get()) != 0:
                if isinstance(tokens, Exception):
                    raise tokens
                yield WORD * (tokens - count)
                count = tokens
        finally:
            del self._replies[number]
            self._send(number, False)

    def close(self) -> None:
        try:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
        except RuntimeError:
            pass
        self._process.kill()
        self._process.join(5)

    def _send(self, number: int, asks: bool) -> None:
        try:
            self._pipe.send((number, asks))
        except OSError:
            if asks:
                self._replies[number].put_nowait(EngineError(ENDED))

    def _came(self) -> None:
        try:
            while self._pipe.poll():
                number, tokens = self._pipe.recv()
                if number in self._replies:
                    self._replies[number].put_nowait(tokens)
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            for told in self._replies.values():
                told.put_nowait(EngineError(ENDED))


def serve(pipe: Connection, name: str, shape: LlmShape, slots: int, device: str) -> None:
    """Of the process: (number, True) asks for a reply, (number, False) ends it; (number, tokens so far) tells, and
    (number, 0) that it is whole."""
    try:
        asyncio.run(_serve(pipe, name, shape, slots, device))
    except EOFError:
        os._exit(0)
    except Exception as error:
        pipe.send(EngineError(f"{type(error).__name__}: {error}"[:500]))
        os._exit(1)


async def _serve(pipe: Connection, name: str, shape: LlmShape, slots: int, device: str) -> None:
    from voicepipe.bench.engines.standins.device import Device
    from voicepipe.bench.engines.standins.llm import TorchLlm

    llm = TorchLlm(name, shape, slots, Device(device))
    over = asyncio.Event()
    replies: dict[int, asyncio.Task[None]] = {}

    async def reply(number: int) -> None:
        try:
            async for tokens in llm.reply(number):
                pipe.send((number, tokens))
            pipe.send((number, 0))
        except Exception as error:
            pipe.send((number, EngineError(f"{type(error).__name__}: {error}"[:500])))
        finally:
            replies.pop(number, None)

    def came() -> None:
        try:
            while pipe.poll():
                number, asks = pipe.recv()
                if asks:
                    replies[number] = asyncio.create_task(reply(number))
                elif number in replies:
                    replies[number].cancel()
        except (EOFError, OSError):
            over.set()

    asyncio.get_running_loop().add_reader(pipe.fileno(), came)
    pipe.send(llm.name.replace("stand-in:", "stand-in in a process of its own:", 1))
    await over.wait()
    raise EOFError
