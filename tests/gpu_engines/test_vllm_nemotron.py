"""`nemotron` in vLLM's environment, which has its torch and transformers: the real class, tiny, with random weights."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers.models.nemotron_asr_streaming.feature_extraction_nemotron_asr_streaming import (
    NemotronAsrStreamingFeatureExtractor,
)

from tests.engines.contract import AsrContract
from tests.gpu_engines import nemotron, random_nemotron
from tests.gpu_engines.random_nemotron import make_nemotron
from tests.support.waiting import until
from voicepipe.audio import RATE, Pcm
from voicepipe.base.errors import EngineBusy, EngineDead, EngineError, EngineMissing
from voicepipe.base.round_robin import owned_by
from voicepipe.config.engine_config import NemotronConfig
from voicepipe.engines.asr.nemotron import front_end
from voicepipe.engines.asr.nemotron.front_end import ChunkCutter
from voicepipe.engines.asr.nemotron.model import LoadedNemotron
from voicepipe.engines.asr.nemotron.nemotron import NemotronAsr, NemotronStream
from voicepipe.engines.asr.nemotron.steps import Row
from voicepipe.engines.base import Asr, Hypothesis
from voicepipe.engines.hosting import supervised

pytestmark = pytest.mark.engine
BLOCK, BANDS = 320, 128


def noise(seconds: float, seed: int = 0) -> Pcm:
    """Sound that comes and goes as syllables do: int16[seconds * 16 kHz]."""
    random, count = np.random.default_rng(seed), round(seconds * RATE)
    loud = np.repeat(random.uniform(0, 1, count // 1600 + 1), 1600)[:count]
    made: Pcm = (3000 * loud * random.normal(0, 1, count)).astype(np.int16)
    return made


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_nemotron(tmp_path_factory.mktemp("nemotron"))


@pytest.fixture(scope="module", name="polyglot")
def _polyglot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_nemotron(tmp_path_factory.mktemp("polyglot"), many_languages=True)
    (folder / "processor_config.json").write_text('{"supported_num_lookahead_tokens": [13, 6, 3, 1, 0]}')
    return folder


def loaded(folder: Path, **changes: Any) -> LoadedNemotron:
    model = LoadedNemotron(NemotronConfig(model=str(folder), device="cpu", **changes))
    model.warm()
    return model


@pytest.fixture(scope="module", name="model")
def _model(folder: Path) -> LoadedNemotron:
    return loaded(folder, streams=64)


@pytest.fixture(name="asr")
async def _asr(folder: Path) -> AsyncIterator[NemotronAsr]:
    asr = NemotronAsr(NemotronConfig(model=str(folder), device="cpu", streams=4))
    await asr.start()
    yield asr
    await asr.close()


class TestNemotronAsr(AsrContract):
    folder: Path
    sound = noise(1.5)

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def model(cls, folder: Path) -> None:
        cls.folder = folder

    @classmethod
    def factory(cls) -> Asr:
        return NemotronAsr(NemotronConfig(model=str(cls.folder), device="cpu", streams=8))


# --- the model ----------------------------------------------------------------------------------------------------


class Utterance:
    """By the model alone, chunk by chunk."""

    def __init__(self, model: LoadedNemotron, slot: int, sound: Pcm, prompt: int = 0) -> None:
        self.model, self.slot, self.prompt = model, slot, prompt
        self.chunks, self.tokens, self.begins = ChunkCutter(model.frames), list[int](), True
        self.chunks.feed(sound)

    def row(self) -> Row:
        row = Row(self.slot, self.begins, [self.chunks.take()], self.prompt)
        self.begins = False
        return row

    def whole(self) -> list[int]:
        while self.chunks.ready:
            self.tokens += self.model.hear([self.row()])[0].tokens
        return self.tokens


def recorded(model: LoadedNemotron, mel: NDArray[np.float32], prompt: int | None) -> list[int]:
    """What transformers' own search finds in the whole recording at once."""
    own: Any = model._batches._model
    for layer in own.encoder.layers:
        del layer.self_attn.relative_k_proj.forward  # it knows the distances of chunks alone
    own.generation_config.decoder_start_token_id = own.config.blank_token_id
    asked = {} if prompt is None else {"prompt_ids": torch.tensor([prompt])}
    found = own.generate(
        input_features=torch.from_numpy(mel)[None], attention_mask=torch.ones(1, len(mel), dtype=torch.bool),
        num_lookahead_tokens=model.frames - 1, max_new_tokens=5000, **asked,
    )  # fmt: skip
    return [token for token in found.sequences[0].tolist() if token != own.config.blank_token_id]


@pytest.mark.parametrize(
    ("chunk_ms", "many_languages"),
    [(80, False), (160, False), (560, False), (1120, False), (80, True), (160, True), (320, True), (560, True)],
)
def test_a_stream_is_heard_as_the_recording_is(
    folder: Path, polyglot: Path, chunk_ms: int, many_languages: bool
) -> None:
    model = loaded(polyglot if many_languages else folder, chunk_ms=chunk_ms, streams=2)
    prompt = model.texts.prompt("de-DE") if many_languages else None
    sound = noise(9)
    utterance = Utterance(model, 1, sound, prompt or 0)
    tokens = utterance.whole()
    frames = (utterance.chunks.heard - front_end.WINDOW // 2) // front_end.HOP + 1
    before = np.zeros(front_end.WINDOW // 2 + 1, np.int16)
    padded = np.concatenate([before, sound])[: front_end.samples(frames)].astype(np.float32) / 32768
    shape, filters = front_end.window(), front_end.mel_filters(BANDS)
    mel = front_end.log_mel(np, padded, front_end.positions(frames), shape, filters).astype(np.float32)
    assert len(set(tokens)) > 3
    assert tokens == recorded(model, mel, prompt)


def test_frames_are_those_of_transformers_front_end() -> None:
    own: Any = object.__new__(NemotronAsrStreamingFeatureExtractor)  # its constructor wants librosa, for the filters
    own.n_fft, own.hop_length, own.win_length = front_end.FFT, front_end.HOP, front_end.WINDOW
    own.mel_filters = torch.from_numpy(front_end.mel_filters(BANDS)).T
    sound = noise(1.0).astype(np.float32) / 32768
    emphasised = np.concatenate([sound[:1], sound[1:] - 0.97 * sound[:-1]])
    theirs = own._torch_extract_fbank_features(torch.from_numpy(emphasised)[None])[0]
    frames = 90
    padded = np.concatenate([np.zeros(front_end.WINDOW // 2 + 1, np.float32), sound])[: front_end.samples(frames)]
    made = {}
    for library, array in ((np, np.asarray), (torch, torch.from_numpy)):
        arrays = (front_end.positions(frames), front_end.window(), front_end.mel_filters(BANDS))
        made[library] = np.asarray(front_end.log_mel(library, array(padded), *map(array, arrays)))
        assert np.abs(made[library] - theirs[:frames].numpy()).max() < 2e-3


def test_a_calls_words_do_not_depend_on_whose_batch_it_is_in(model: LoadedNemotron) -> None:
    """64 calls, of random ages."""
    random = np.random.default_rng(1)
    ages = random.integers(0, 4000, 64)
    sounds = [noise(0.5 + age / 1000, seed) for seed, age in enumerate(ages)]
    alone = [Utterance(model, 0, sound).whole() for sound in sounds]
    together = [Utterance(model, slot, sound) for slot, sound in enumerate(sounds)]
    while going := [each for each in together if each.chunks.ready]:
        some = [going[n] for n in random.permutation(len(going))[: random.integers(1, 65)]]
        for each, heard in zip(some, model.hear([each.row() for each in some]), strict=True):
            each.tokens += heard.tokens
    same = sum(each.tokens == tokens for each, tokens in zip(together, alone, strict=True))
    assert same >= 63, "one may have two tokens that are as likely as each other"
    assert len({tuple(tokens) for tokens in alone}) > 16


def test_a_copy_leaves_the_slot_as_it_was(model: LoadedNemotron) -> None:
    utterance, other = Utterance(model, 3, noise(4)), Utterance(model, 4, noise(4))
    while utterance.chunks.ready:
        rest = utterance.chunks.rest()
        copy = Row(3, utterance.begins, [rest[0], rest[0]], copies=True)
        first, again = model.hear([copy, copy])
        assert first == again
        utterance.tokens += model.hear([utterance.row()])[0].tokens
    assert utterance.tokens == other.whole()


def test_what_is_no_number_is_said_of_its_call_alone(model: LoadedNemotron) -> None:
    broken, well, before = (Utterance(model, slot, noise(2)) for slot in (5, 6, 7))
    expected = before.whole()
    model.hear([broken.row(), well.row()])
    model._states.kv[:, :, 5] = torch.nan
    well.tokens, begun = [], Utterance(model, 6, noise(2))
    assert [heard.finite for heard in model.hear([broken.row(), begun.row()])] == [False, True]
    assert begun.whole() == expected[-len(begun.tokens) :]


# --- utterances ---------------------------------------------------------------------------------------------------


def ignore(partial: Hypothesis) -> None:
    pass


async def test_words_come_while_one_speaks_and_stay(asr: NemotronAsr) -> None:
    partials: list[Hypothesis] = []
    stream, sound = asr.stream(partials.append), noise(6)
    for at in range(0, sound.size, 8 * BLOCK):
        stream.feed(sound[at : at + 8 * BLOCK])
        await until(lambda: not stream._chunks.ready and not steps(asr)._running)
    final = await stream.finish()
    assert len(partials) > 3 and final.until == sound.size
    texts = [partial.text for partial in partials] + [final.text]
    assert all(after.startswith(before) for before, after in zip(texts, texts[1:], strict=False))
    assert [partial.until for partial in partials] == sorted(partial.until for partial in partials)


async def test_settling_does_not_change_what_is_heard_later(asr: NemotronAsr) -> None:
    sound = noise(5)
    plain = asr.stream(ignore)
    plain.feed(sound)
    stream = asr.stream(ignore)
    for at in range(0, sound.size, 1234):
        stream.feed(sound[at : at + 1234])
        assert (await stream.settle()).until == min(sound.size, at + 1234)
    assert (await stream.finish()) == (await plain.finish())


def steps(asr: NemotronAsr) -> Any:
    assert asr.last
    return asr.last.queue


async def cancelled_settle(stream: NemotronStream) -> None:
    settling = asyncio.ensure_future(stream.settle())
    await asyncio.sleep(0)
    settling.cancel()
    await asyncio.wait([settling])
    stream.cancel()


async def cancelled_during_a_step(stream: NemotronStream) -> None:
    stream.feed(noise(60))
    settling = asyncio.ensure_future(stream.settle())
    await asyncio.sleep(0)
    assert stream._steps._running
    stream.cancel()
    await asyncio.wait([settling])
    assert settling.cancelled()


async def finished(stream: NemotronStream) -> None:
    await stream.finish()


async def fed_for_minutes(stream: NemotronStream) -> None:
    stream.feed(noise(125))
    assert (await stream.finish()).text


async def dropped(stream: NemotronStream) -> None:
    stream.cancel()


ENDS = [finished, dropped, cancelled_settle, cancelled_during_a_step, fed_for_minutes]


@pytest.mark.parametrize("end", ENDS)
async def test_slots_come_back(asr: NemotronAsr, end: Callable[[NemotronStream], Any]) -> None:
    for _ in range(1 if end is fed_for_minutes else 6):  # of 4 slots
        stream = asr.stream(ignore)
        stream.feed(noise(0.7))
        assert asr.decoders_in_use == 1
        await end(stream)
        assert asr.decoders_in_use == 0
    stream = asr.stream(ignore)
    stream.feed(noise(2.0))
    expected = await stream.finish()
    stream = asr.stream(ignore)
    stream.feed(noise(2.0))
    assert await stream.finish() == expected, "nothing is left of who had the slot before"


async def test_who_finds_no_slot_waits_and_calls_take_turns(asr: NemotronAsr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voicepipe.engines.asr.nemotron.nemotron.WAIT_S", 0.2)
    streams = []
    for call in ("greedy", "greedy", "greedy", "greedy", "greedy", "other"):
        with owned_by(call):
            streams.append(asr.stream(ignore))
            streams[-1].feed(noise(1.0))
    assert asr.decoders_in_use == 4 and streams[-1]._slot.done(), "one call does not have the last of them"
    with pytest.raises(EngineBusy, match="admit fewer calls"):
        await streams[4].settle()
    for stream in streams[:4]:
        stream.cancel()
    assert (await streams[4].finish()).text
    for stream in streams:
        stream.cancel()
    assert asr.decoders_in_use == 0 and not steps(asr).slots.waiting


async def test_sound_that_comes_faster_than_real_time_holds_up_nobody(asr: NemotronAsr) -> None:
    with owned_by("fast"):
        fast = asr.stream(ignore)
    fast.feed(noise(120))
    ending = asyncio.ensure_future(fast.settle())
    for number in range(3):
        with owned_by(f"call {number}"):
            stream = asr.stream(ignore)
        stream.feed(noise(1.0))
        assert (await stream.finish()).text
        assert not ending.done() and fast._chunks.fed - fast._chunks.heard > 60 * RATE
    fast.cancel()
    await asyncio.wait([ending])


async def test_three_failures_and_a_trial_have_the_model_loaded_again(
    asr: NemotronAsr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised, "FIRST_PAUSE_S", 0.05)

    def fail(*args: Any) -> None:
        raise RuntimeError("CUDA error: an illegal memory access")

    async def three_fail() -> None:
        for _ in range(3):
            stream = asr.stream(ignore)
            stream.feed(noise(0.5))
            with pytest.raises(EngineError, match="illegal memory access"):
                await stream.finish()

    speaker = asr.stream(ignore)
    speaker.feed(noise(0.5))
    await speaker.settle()
    model: Any = asr.core.model
    monkeypatch.setattr(model, "hear", fail)
    await three_fail()
    await until(lambda: not steps(asr).failures._failures.suspect)
    assert asr.alive, "the trial was answered"
    monkeypatch.setattr(model, "try_out", fail)
    await three_fail()
    await until(lambda: not asr.alive)
    await until(lambda: asr.alive and asr.restarts == 1)
    speaker.feed(noise(0.5))
    with pytest.raises(EngineDead):
        await speaker.finish()
    stream = asr.stream(ignore)
    stream.feed(noise(1.0))
    assert (await stream.finish()).text
    assert asr.decoders_in_use == 0


async def test_what_was_heard_in_part_is_not_told_as_a_whole(asr: NemotronAsr, monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = asr.core.model
    hear = model.hear
    stream = asr.stream(ignore)
    monkeypatch.setattr(model, "hear", lambda rows: (_ for _ in ()).throw(RuntimeError("once")))
    stream.feed(noise(0.3))
    await until(lambda: stream._lost is not None)
    monkeypatch.setattr(model, "hear", hear)
    stream.feed(noise(1.0))
    with pytest.raises(EngineError, match="once"):
        await stream.settle()
    stream.cancel()
    assert asr.decoders_in_use == 0 and asr.alive


# --- what is missing ----------------------------------------------------------------------------------------------


async def test_what_cannot_be_loaded_says_why(folder: Path, tmp_path: Path) -> None:
    async def said(model: str, **changes: Any) -> str:
        with pytest.raises(EngineError) as raised:
            await NemotronAsr(NemotronConfig(model=model, **changes)).start()
        return str(raised.value)

    assert "there is no '/nowhere'" in await said("/nowhere")
    assert "its config.json is missing" in await said(str(tmp_path))
    assert "was trained for 80, 160, 560, 1120" in await said(str(folder), chunk_ms=320)
    assert "torch sees no GPU" in await said(str(folder), device="cuda:0")
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    assert "has no *.safetensors" in await said(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:5000])
    assert "Nemotron cannot be loaded" in await said(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{}")
    assert "tokenizer.json cannot be read" in await said(str(tmp_path))
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(EngineMissing, match=r"has no tokenizer.json"):
        await NemotronAsr(NemotronConfig(model=str(tmp_path))).start()


# --- what it takes ------------------------------------------------------------------------------------------------


def test_what_it_takes_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nemotron.main(["--tiny", "--json", str(tmp_path / "figures.json")]) == 0
    kept = json.loads((tmp_path / "figures.json").read_text())["figures"]
    assert set(kept["steps_ms"]) == {"step", "step of 8", "settle, one step", "settle, two steps"}
    said = capsys.readouterr()
    assert kept["bytes_a_call"] > 0 and "memory of a call" in said.out
    assert said.out.startswith("a small model: a trial, in chunks of 160 ms: ") and "0.6B" not in said.out
    assert re.search(r"A step of 8 calls takes \d+\.\d times a step of one\n", said.out)
    assert "shards" not in said.err


def test_the_bench_looks_for_its_device_before_it_makes_a_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It wrote 2.4 GB first."""
    monkeypatch.setattr(random_nemotron, "make_nemotron", lambda *args, **more: pytest.fail("it makes a model"))
    assert nemotron.main(["--device", "cuda:9"]) == 2
    assert "--device cuda:9: torch sees no such device here" in capsys.readouterr().err
