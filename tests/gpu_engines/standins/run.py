"""The whole measurement within its budget of wall time: rounds of all cases while there is time for them."""

import asyncio
import gc
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tests.gpu_engines.standins import kokoro, llama, machine
from tests.gpu_engines.standins.cases import ALONE, MOST_CALLS, ONE, PROCESSES, ROUNDS, Case
from tests.gpu_engines.standins.child import LanguageChild
from tests.gpu_engines.standins.device import Device, Yielding, told
from tests.gpu_engines.standins.language import UNHEARD, LanguageLoad
from tests.gpu_engines.standins.recogniser import SIZES, Row, StandInRecogniser
from tests.gpu_engines.standins.record import WHAT, Record, summary
from tests.gpu_engines.standins.tts import TorchTts
from tests.gpu_engines.standins.voice import HOW, SpokenReplies, alone
from tests.gpu_engines.standins.window import WindowLoad, seen
from voicepipe.rtp.clock import SWITCH_S
from voicepipe.sizing.shapes import LLMS

RECOGNISER, VOICE = "recogniser", "voice"
SPARE = 16
"""Settles at a time."""
LEAST_S, MOST_S = 2.5, 6.0
"""Of a window."""
END_S = 8.0
"""Kept for the end."""
BETWEEN_S = 0.3
"""Of a case, besides its lead and its window."""


class Run:
    def __init__(self, out: Path, began: float, budget_s: float, llm: str, llm_share: int, *, tiny: bool) -> None:
        """`began`: monotonic second from which the budget counts."""
        self._began, self._budget_s, self._tiny = began, budget_s, tiny
        self._shape = llama.TINY if tiny else LLMS[llm]
        self._record = Record(out)
        self._parts: dict[str, Any] = {}
        """What is beside the recogniser; an exception: why it could not be made."""
        self._eager: dict[str, list[str]] = {}
        """Of each of them what runs kernel by kernel, though it should not."""
        watch = threading.Timer(budget_s - 3 - self._past, self._cut)
        watch.daemon = True
        watch.start()
        torch.set_num_threads(1)
        self._child = LanguageChild(self._shape, cuda=not tiny, share=llm_share)  # builds its model while we build ours
        self._record.write(language_model=f"{WHAT}: {'tiny' if tiny else llm}", llm_share_percent=llm_share)
        self._device = Device(cuda=not tiny)
        torch.backends.cudnn.benchmark = False  # every size of batch in every thread would try out all kernels
        torch.backends.cuda.enable_cudnn_sdp(False)  # it would plan for every shape
        self._thread = ThreadPoolExecutor(1, "recogniser")

    def run(self, cases: Sequence[Case], *, voice_beside: bool = False) -> int:
        """`voice_beside`: first phrases are as urgent as the recogniser's steps; else all of the voice yields."""
        sys.setswitchinterval(SWITCH_S)  # as a PoP does it
        try:
            recogniser = self._recogniser()
            wheres = {case.where for case in cases}
            if PROCESSES in wheres:
                self._make(PROCESSES, self._in_child)
            if ONE in wheres:
                self._make(ONE, self._in_this_process)
            if any(case.voice for case in cases):
                self._make(VOICE, lambda: self._voice(voice_beside))
            gc.collect()
            gc.freeze()
            self._rounds(cases, recogniser)
        except Exception as error:
            traceback.print_exc()
            self._record.write(error=told(error))
            return 1
        finally:
            self._child.kill()
        self._record.write(seconds=round(self._past, 1), state_at_end=machine.state(self._device))
        self._say(f"ended; {self._record.about}")
        return 0

    @property
    def _past(self) -> float:
        return time.monotonic() - self._began

    @property
    def _left(self) -> float:
        return self._budget_s - self._past - END_S

    def _say(self, text: str) -> None:
        print(f"{self._past:6.1f} s  {text}", flush=True)

    def _cut(self) -> None:
        """The time is over in the middle of something: what there is stays."""
        self._say("the time is over")
        self._child.kill()
        self._record.write(cut=True, seconds=round(self._past, 1))
        os._exit(3)

    def _recogniser(self) -> StandInRecogniser:
        """With its steps measured back to back on the way."""
        device = self._device
        self._record.write(versions=machine.versions(device), state_at_begin=machine.state(device))
        self._say(f"{self._record.about}")
        recogniser = StandInRecogniser(device, self._tiny, MOST_CALLS, SPARE)
        for graph in (True, False):
            for size in SIZES:
                self._steps(recogniser, size, graph)
        self._thread.submit(recogniser.warm).result(timeout=60)
        size, finite = recogniser.slots.bytes_a_slot, recogniser.slots.finite
        self._record.write(
            recogniser=f"{WHAT}: Nemotron Speech Streaming's class with random weights, {device.bf16}",
            bytes_a_slot=size, finite=finite, not_recorded=device.unrecorded,
            state_with_recogniser=machine.state(device),
        )  # fmt: skip
        self._say(f"{size / 2**20:.2f} MiB a slot, finite: {finite}, not recorded: {device.unrecorded}")
        self._eager[RECOGNISER] = [f"the recogniser is eager: {why}" for why in device.unrecorded[:1]]
        if not finite:
            self._eager[RECOGNISER].append("the recogniser's state is not finite: its words mean nothing")
        return recogniser

    def _steps(self, recogniser: StandInRecogniser, size: int, graph: bool) -> None:
        rows, took = [Row(slot, slot, silent=False) for slot in range(size)], []
        for number in range(23 if graph else 10):
            began = time.perf_counter()
            recogniser.hear(rows, graph=graph)
            if number >= 3:
                took.append(1000 * (time.perf_counter() - began))
        row = {"what": WHAT, "which": "tuned", "mode": "graph" if graph else "eager", "rows": size}
        self._record.steps.append(row | {"step_ms": (found := summary(took))})
        self._say(f"{WHAT}, back to back, {row['mode']}, {size} rows: {found['p50']:.2f}/{found['p95']:.2f} ms")

    def _make(self, name: str, make: Callable[[], tuple[Any, list[str]]]) -> None:
        """A part, and what could not be recorded of it. What goes wrong is in the rows of the cases that need it."""
        try:
            self._parts[name], unrecorded = make()
        except Exception as error:
            self._parts[name], unrecorded = error, []
        torch.backends.cudnn.benchmark = False
        self._eager[name] = [f"{len(unrecorded)} parts are eager: {why}" for why in unrecorded[-1:]]
        ready = told(self._parts[name]) if isinstance(self._parts[name], Exception) else "ready"
        self._say(f"{name}: {', '.join([ready, *self._eager[name]])}")

    def _in_child(self) -> tuple[LanguageChild, list[str]]:
        return self._child, self._child.ready(min(60.0, self._left / 2))

    def _in_this_process(self) -> tuple[LanguageLoad, list[str]]:
        device = Yielding(cuda=not self._tiny)
        return LanguageLoad(device, self._shape), device.unrecorded

    def _voice(self, beside: bool) -> tuple[TorchTts, list[str]]:
        """And times its phrases alone. Nothing else works on the GPU meanwhile: cuDNN tries its kernels."""
        device = (Device if beside else Yielding)(cuda=not self._tiny)
        voice = TorchTts(kokoro.TINY if self._tiny else kokoro.TtsShape(), device)
        first, later = (summary(took) for took in asyncio.run(alone(voice)))
        self._record.write(
            voice=f"{WHAT}: {'tiny' if self._tiny else 'kokoro-82m'}", voice_priority="beside" if beside else "behind",
            turn_ms_is=HOW, voice_alone_ms={"first": first, "later": later}, voice_silent_phrases=voice.silent,
            state_with_voice=machine.state(self._device),
        )  # fmt: skip
        self._say(f"the voice by itself, p50 ms: first phrases {first['p50']}, later ones {later['p50']}. {HOW}")
        return voice, device.unrecorded

    def _rounds(self, cases: Sequence[Case], recogniser: StandInRecogniser) -> None:
        lead_s = sum(case.lead_s for case in cases) / len(cases)
        window_s = min(MOST_S, max(LEAST_S, self._left / (ROUNDS * len(cases)) - BETWEEN_S - lead_s))
        self._record.write(window_s=round(window_s, 2))
        self._say(f"windows of {window_s:.2f} s")
        for number in range(ROUNDS):
            for case in cases:
                if self._left > case.lead_s + window_s + BETWEEN_S:
                    self._measured(WindowLoad(case, window_s, 100 * number + case.calls), recogniser)

    def _measured(self, load: WindowLoad, recogniser: StandInRecogniser) -> None:
        """One round of a case. What goes wrong is in its row."""
        case, found = load.case, self._record.of(load.case)
        parts = [RECOGNISER, *[case.where] * (case.where != ALONE), *[VOICE] * case.voice]
        try:
            model: LanguageLoad | LanguageChild | None = None if case.where == ALONE else self._part(case.where)
            voice: TorchTts | None = self._part(VOICE) if case.voice else None
            spoken = SpokenReplies(voice, self._child) if voice else None
            silent = voice.silent if voice else 0
            try:
                if model:
                    model.start(case.lead_s)
                asked = (lambda ended, ask=model.ask: partial(ask, UNHEARD)) if model else None
                window = seen(load, recogniser, self._thread, spoken.turn if spoken else asked, spoken)
            finally:
                replies = model.stop() if model else None
            found.seen.append(window)
            found.replies += [replies] if replies else []
            if spoken and spoken.error:
                found.errors.append(spoken.error)
            if voice and voice.silent > silent:
                found.errors.append(f"{voice.silent - silent} phrases of the voice were silent: its numbers are NaN")
        except Exception as error:
            found.errors.append(told(error))
        found.errors += [why for name in parts for why in self._eager[name] if why not in found.errors]
        self._record.write(seconds=round(self._past, 1))
        self._say(found.line())

    def _part(self, name: str) -> Any:
        """Raises what went wrong when it was made."""
        if isinstance(part := self._parts[name], Exception):
            raise part
        return part
