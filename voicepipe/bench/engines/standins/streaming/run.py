"""The whole measurement within its budget of wall time: rounds of all cases while there is time for them."""

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from rich.console import Console

from voicepipe.bench.engines.shapes import TINY, TTSS
from voicepipe.bench.engines.standins.device import Device
from voicepipe.bench.engines.standins.streaming import machine
from voicepipe.bench.engines.standins.streaming.cases import (
    ALONE,
    CASES,
    EQUAL,
    MOST_CALLS,
    ONE,
    PROCESSES,
    ROUNDS,
    USUAL_MS,
    Case,
)
from voicepipe.bench.engines.standins.streaming.child import LanguageChild
from voicepipe.bench.engines.standins.streaming.language import MODEL, LanguageLoad, Replies, Yielding
from voicepipe.bench.engines.standins.streaming.model import build
from voicepipe.bench.engines.standins.streaming.recogniser import SIZES, Errors, Row, StandInRecogniser
from voicepipe.bench.engines.standins.streaming.record import COLUMNS, WHAT, Record, short, summary
from voicepipe.bench.engines.standins.streaming.voice import HOW, SpokenReplies, alone
from voicepipe.bench.engines.standins.streaming.window import WindowLoad, seen
from voicepipe.bench.engines.standins.tts import TorchTts

VOICE = "kokoro-82m"
SPARE = 16
"""Settles at a time."""
PLAIN = (1, 16, 64)
"""Sizes for which the class is measured before it is tuned."""
LEAST_S, MOST_S = 2.5, 6.0
"""Of a window."""
END_S = 8.0
"""Kept for the end."""
BUILD_S = 12.0
"""Kept for the language model in this process."""
BETWEEN_S = 0.3
"""Of a case, besides its lead and its window."""


class Run:
    def __init__(
        self,
        out: Path,
        began: float,
        budget_s: float,
        tiny: bool,
        cases: Sequence[Case] = CASES,
        llm_share: int = 100,
        voice_beside: bool = False,
    ) -> None:
        """`voice_beside`: first phrases are as urgent as the recogniser's steps; else all of the voice yields."""
        self._began, self._budget_s, self._tiny = began, budget_s, tiny
        self._cases = cases
        self._record, self._console = Record(out), Console(width=300, highlight=False)
        self._errors = Errors()
        self._language: LanguageLoad | Exception | None = None
        self._voice: TorchTts | Exception | None = None
        self._voice_beside = voice_beside
        self._unrecorded: dict[str, str] = {}
        """What runs kernel by kernel though it should not, by where; "" is the recogniser."""
        self._thread = ThreadPoolExecutor(1, "recogniser")
        watch = threading.Timer(budget_s - 3 - self._past, self._cut)
        watch.daemon = True
        watch.start()
        torch.set_num_threads(1)
        self._record.write(llm_share_percent=llm_share)
        self._child = LanguageChild(tiny, llm_share)  # builds its model while we build ours
        self._device = Device("cpu" if tiny else "auto")
        torch.backends.cudnn.benchmark = False  # every size of batch in every thread would try out all kernels
        torch.backends.cuda.enable_cudnn_sdp(False)  # it would plan for every shape

    def run(self) -> int:
        try:
            self._recogniser = self._made()
        except Exception as error:
            self._child.kill()
            self._record.write(error=_told(error), not_recorded=self._errors.said)
            self._console.print_exception()
            return 1
        try:
            self._say(f"the language model's process: {self._child_ready()}")
            if any(case.voice for case in self._cases):
                self._voice = self._made_voice()
            gc.collect()
            gc.freeze()
            self._rounds()
            self._record.write(memory_at_end=machine.memory(self._device))
        finally:
            self._child.kill()
        self._record.write(
            seconds=round(self._past, 1), state_at_end=machine.state(self._device), not_recorded=self._errors.said
        )
        self._console.print(self._record.table())
        self._say(f"ended; {self._record.about}")
        return 0

    @property
    def _past(self) -> float:
        return time.monotonic() - self._began

    @property
    def _left(self) -> float:
        return self._budget_s - self._past - END_S

    def _say(self, text: str) -> None:
        self._console.print(f"{self._past:6.1f} s  {text}", soft_wrap=True, markup=False)

    def _cut(self) -> None:
        """The time is over in the middle of something: what there is stays."""
        self._say("the time is over")
        self._child.kill()
        self._record.write(cut=True, seconds=round(self._past, 1))
        sys.stdout.flush()
        os._exit(3)

    def _made(self) -> StandInRecogniser:
        """With its steps measured back to back on the way, plain and tuned, eager and recorded."""
        device = self._device
        self._record.write(versions=machine.versions(device), state_at_begin=machine.state(device))
        self._say(f"{self._record.about}")
        before = machine.memory(device)
        model = build(device, self._tiny)
        recogniser = StandInRecogniser(model, MOST_CALLS, SPARE, device)
        recogniser.record(PLAIN, urgent=True)
        self._say(f"the recogniser is made; not recorded: {self._errors.said[-1:]}")
        self._steps(recogniser, "as published", PLAIN)
        recogniser.tune()
        before_tuned = device.unrecorded
        for urgent in (True, False):
            recogniser.record(SIZES, urgent=urgent)
        if device.unrecorded > before_tuned:
            self._unrecorded[""] = f"recogniser not recorded, so eager: {self._errors.said[-1]}"
        self._steps(recogniser, "tuned", SIZES)
        self._thread.submit(self._warm, recogniser).result(timeout=60)
        slots = recogniser.slots
        finite = all(bool(each.isfinite().all()) for each in (slots.said, slots.cell, slots.kv))
        if not finite:
            self._unrecorded[""] = "the recogniser's state is not finite: its words mean nothing"
        self._record.write(
            recogniser=f"{WHAT}: Nemotron Speech Streaming's class with random weights",
            recogniser_dtype=device.named(model.dtype),
            recogniser_weights=sum(each.numel() for each in model.parameters()),
            bytes_a_slot=slots.bytes_a_slot, finite=finite, not_recorded=self._errors.said,
            language_model=f"{WHAT}: {'tiny' if self._tiny else MODEL}, {device.named(device.bf16)}",
            memory_before=before, memory_with_recogniser=machine.memory(device),
        )  # fmt: skip
        self._say(f"{slots.bytes_a_slot / 2**20:.2f} MiB a slot, finite: {finite}, {self._errors.said[-1:]}")
        return recogniser

    def _steps(self, recogniser: StandInRecogniser, which: str, sizes: "list[int] | tuple[int, ...]") -> None:
        for graph in (True, False):
            for size in sizes:
                row = {"what": WHAT, "which": which, "mode": "graph" if graph else "eager", "rows": size}
                try:
                    took = self._timed(recogniser, size, graph)
                    self._record.steps.append(row | {"step_ms": summary(took)})
                except Exception as error:
                    self._record.steps.append(row | {"error": _told(error)})
        self._record.write()
        for each in self._record.steps:
            if each["which"] == which:
                times = each.get("step_ms", {})
                told = f"{times['p50']:.2f}/{times['p95']:.2f} ms" if times else each["error"]
                self._say(f"{WHAT}, back to back, {which}, {each['mode']}, {each['rows']} rows: {told}")

    def _timed(self, recogniser: StandInRecogniser, size: int, graph: bool) -> list[float]:
        """ms of each step."""
        rows, took = [Row(slot, slot, silent=False) for slot in range(size)], []
        for number in range(23 if graph else 10):
            began = time.perf_counter()
            recogniser.hear(rows, graph=graph)
            if number >= 3:
                took.append(1000 * (time.perf_counter() - began))
        return took

    @staticmethod
    def _warm(recogniser: StandInRecogniser) -> None:
        """In the thread that will take the steps: libraries keep their choices by thread."""
        for size in SIZES:
            for _ in range(2):
                recogniser.hear([Row(slot, slot, silent=False) for slot in range(size)], graph=False)
                recogniser.hear([Row(slot, slot, silent=False) for slot in range(size)], graph=True)

    def _child_ready(self) -> str:
        try:
            self._child.ready(min(60.0, self._left / 2))
        except Exception as error:
            self._record.write(child_error=_told(error))
            return _told(error)
        self._record.write(child_not_recorded=self._child.unrecorded)
        if self._child.unrecorded:
            self._unrecorded[PROCESSES] = f"{self._child.unrecorded} parts of the language model are eager"
        return f"ready, {self._child.unrecorded} parts not recorded"

    def _made_voice(self) -> "TorchTts | Exception":
        """And times its phrases alone. Nothing else works on the GPU meanwhile: cuDNN tries its kernels."""
        where, name = "cpu" if self._tiny else "auto", TINY if self._tiny else VOICE
        try:
            device = Device(where) if self._voice_beside else Yielding(where)
            voice = TorchTts(name, TTSS[name], device)
            took = asyncio.run(alone(voice))
        except Exception as error:
            self._record.write(voice_error=_told(error))
            self._say(f"no voice: {_told(error)}")
            return error
        finally:
            torch.backends.cudnn.benchmark = False
        if device.unrecorded:
            self._unrecorded[VOICE] = f"{device.unrecorded} parts of the voice are eager: {self._errors.said[-1]}"
        first, later = summary(took[True]), summary(took[False])
        self._record.write(
            voice=voice.name, voice_priority="beside" if self._voice_beside else "behind", turn_ms_is=HOW,
            voice_alone_ms={"first": first, "later": later}, voice_silent_phrases=voice.silent,
            memory_with_voice=machine.memory(self._device),
        )  # fmt: skip
        self._say(
            f"{voice.name}, by itself: first phrases {short(first, 'p50', 'p95')} ms, later ones "
            f"{short(later, 'p50', 'p95')}; {device.unrecorded} parts not recorded, {voice.silent} phrases silent"
        )
        self._say(HOW)
        return voice

    def _rounds(self) -> None:
        build_s = BUILD_S if any(case.where in (ONE, EQUAL) for case in self._cases) else 0.0
        each_s = (self._left - build_s) / (ROUNDS * len(self._cases))
        lead_s = sum(case.lead_s for case in self._cases) / len(self._cases)
        window_s = min(MOST_S, max(LEAST_S, each_s - BETWEEN_S - lead_s))
        self._record.write(window_s=round(window_s, 2))
        self._say(f"windows of {window_s:.2f} s; {' | '.join(COLUMNS)}")
        for number in range(ROUNDS):
            for case in self._cases:
                if self._left > case.lead_s + window_s + BETWEEN_S:
                    self._measured(case, number, window_s)

    def _measured(self, case: Case, number: int, window_s: float) -> None:
        """One round of a case. What goes wrong is in its row."""
        found = self._record.of(case)
        load = WindowLoad(case.calls, case.graph, case.where != EQUAL, case.lead_s, window_s, 100 * number + case.calls)
        sys.setswitchinterval(case.switch_ms / 1000)
        model: LanguageLoad | LanguageChild | None = None
        replies: Replies | None = None
        try:
            model = self._model(case)
            spoken = self._spoken() if case.voice else None
            silent = self._silent
            try:
                if model:
                    model.start(0.0 if spoken else load.rate, case.lead_s, load.seed + 1)
                what = seen(load, self._recogniser, self._thread, spoken)
            finally:
                if model:
                    replies = model.stop()
            found.seen.append(what)
            if replies:
                found.replies.append(replies)
            if spoken and spoken.error:
                found.errors.append(spoken.error)
            if more := self._silent - silent:
                found.errors.append(f"{more} phrases of the voice were silent: its numbers are NaN")
        except Exception as error:
            found.errors.append(_told(error))
        finally:
            sys.setswitchinterval(USUAL_MS / 1000)
        for where in {case.where, "" if case.graph else case.where, VOICE if case.voice else case.where}:
            if (why := self._unrecorded.get(where)) and why not in found.errors:
                found.errors.append(why)
        self._record.write(seconds=round(self._past, 1))
        self._say(" | ".join(found.cells()))

    def _spoken(self) -> SpokenReplies:
        """Raises what went wrong when the voice was made."""
        assert self._voice
        if isinstance(self._voice, Exception):
            raise self._voice
        return SpokenReplies(self._voice, self._child)

    @property
    def _silent(self) -> int:
        return self._voice.silent if isinstance(self._voice, TorchTts) else 0

    def _model(self, case: Case) -> "LanguageLoad | LanguageChild | None":
        """Raises what went wrong when it was made."""
        if case.where == ALONE:
            return None
        if case.where == PROCESSES:
            return self._child
        if self._language is None:
            try:
                device = Yielding("cpu" if self._tiny else "auto")
                self._language = LanguageLoad(device, self._tiny)
                if device.unrecorded:
                    why = f"{device.unrecorded} parts of the language model are eager: {self._errors.said[-1]}"
                    self._unrecorded |= {ONE: why, EQUAL: why}
                torch.backends.cudnn.benchmark = False
            except Exception as error:
                self._language = error
            self._say(f"the language model in this process: {type(self._language).__name__}, {self._errors.said[-1:]}")
            gc.collect()
            gc.freeze()
        if isinstance(self._language, Exception):
            raise self._language
        return self._language


def _told(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
