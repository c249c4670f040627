"""hibari: when its words end, that no text can do harm, and that nothing is ever fetched."""

import asyncio
import sys
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.engines.contract import TtsContract, whole
from tests.support import read_back
from tests.support.waiting import until
from voicepipe.base.errors import EngineDead, EngineError, EngineMissing
from voicepipe.base.words import WRITTEN, plain
from voicepipe.config import Config
from voicepipe.config.engine_config import EnginesConfig
from voicepipe.engines.base import Speech
from voicepipe.engines.hosting.failures import FAILURES
from voicepipe.engines.loader import choose
from voicepipe.engines.tts import hibari
from voicepipe.engines.tts.hibari import LENGTHS, HibariModel, HibariTts, timed
from voicepipe.engines.tts.shaping import audible, pieces
from voicepipe.languages import speakable
from voicepipe.languages.pronunciation import BEGINS, ENDS, Pronunciations
from voicepipe.languages.spoken_pieces import together

pytestmark = pytest.mark.engine
TEXT = "We are open Tuesday to Sunday, from noon to ten in the evening."


class TestHibariTts(TtsContract):
    factory = HibariTts


@pytest.fixture(scope="module")
def model() -> HibariModel:
    return HibariModel()


def test_the_loader_knows_it() -> None:
    assert isinstance(choose(Config(engines=EnginesConfig(tts="hibari"))).tts, HibariTts)


def test_the_same_text_is_the_same_sound(model: HibariModel) -> None:
    assert np.array_equal(model.speak(TEXT, 1.0).pcm, model.speak(TEXT, 1.0).pcm)


# --- the times of words -------------------------------------------------------------------------------------------


def begins(model: HibariModel, text: str) -> list[tuple[str, str]]:
    """Each word of `text` of which it is known where it begins, and the phonemes from there to the next space."""
    said, starts = model.read(text)
    words = {word.start(): word.group() for word in WRITTEN.finditer(text)}
    return [(words[at], said[phoneme:].split(" ")[0]) for at, phoneme in starts]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello there, Anna.", [("Hello", "həlˈO"), ("there,", "ðˈɛɹ,"), ("Anna.", "ˈɑnə.")]),
        ("of the zorgle", [("of", "ʌv"), ("the", "ðə"), ("zorgle", "zˈɔɹɡᵊl")]),
        ("Dr. Smith & Mr. Hall", [("Dr.", "dˈɑktəɹ"), ("&", "ænd"), ("Mr.", "mˈɪstəɹ"), ("Hall", "hˈɔl")]),
        ("I said “no”, twice", [("I", "ˌI"), ("said", "sˈɛd"), ("“no”,", "nˈO,"), ("twice", "twˈIs")]),
        ("Come at 7:30, please", [("Come", "kˈʌm"), ("at", "æt"), ("7:30,", "sˈɛvən"), ("please", "plˈiz")]),
        ("Room 5 — 您 — or six", [("Room", "ɹˈum"), ("5", "fˈIv"), ("six", "sˈɪks")]),
    ],
)  # fmt: skip
def test_each_word_begins_with_its_own_phonemes(model: HibariModel, text: str, words: list[tuple[str, str]]) -> None:
    assert set(words) <= set(begins(model, text))


def test_words_end_at_the_pauses_that_are_heard(model: HibariModel) -> None:
    """A word behind a comma begins where the sound goes on: the model knows it to two of its units of 25 ms."""
    for first, second in (("We are open Tuesday to Sunday,", "from noon to ten."), ("Yes,", "behind the house.")):
        speech = model.speak(f"{first} {second}", 1.0)
        ends = [word.end for word in speech.words]
        assert [word.text for word in speech.words] == f"{first} {second}".split() and ends == sorted(ends)
        goes_on = ends[len(first.split()) - 1]
        tenth = hibari.RATE // 10
        before, behind = speech.pcm[goes_on - tenth : goes_on], speech.pcm[goes_on : goes_on + 2 * tenth]
        assert np.abs(before).mean() < np.abs(behind).mean() / 3, "silence, then sound"


def test_all_phonemes_together_last_as_long_as_the_sound(model: HibariModel, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[np.ndarray] = []
    run = model._session.run

    class Listening:
        def run(self, *asked: object) -> list[np.ndarray]:
            found: list[np.ndarray] = run(*asked)
            taken.extend((found[0], found[-1]))
            return found

    monkeypatch.setattr(model, "_session", Listening())
    model.speak(TEXT, 0.8)
    spectrum, lengths = taken
    assert spectrum.shape[2] == 2 * lengths.sum(), "frames of 12.5 ms, units of 25"
    assert lengths.size == len(model.read(TEXT)[0]) + 2


# --- texts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "<speak><break time='10s'/>hello</speak>", "[hello](/bˈæd wˈɜɹdz/)", "null \0 byte", "\ud800 lone surrogate",
        "مرحبا hello 你好 🎉", "Grüße aus Zürich, señor Muñoz!", "(¹ a⑴ 5⑴2", "9" * 400, "$" + "9" * 100, "x" * 2000,
        "1,000,000,000,000,000,000,000,000th", "12:99 99/99/9999 0000-00-00 1.2.3.4", "zorgle wibbled quuxly",
        "Jan 32, St. St. St. No. No. 5, Chapter IIII", "'tis rock'n'roll''", "C++ C# .NET a@b.com http://a.b/c?d=e",
    ],
)  # fmt: skip
def test_text_is_only_text(model: HibariModel, text: str) -> None:
    said = [model.speak(piece, 1.0) for piece in pieces(text)]
    assert any(speech.pcm.size for speech in said)
    for speech in said:
        assert speech.pcm.size < 60 * hibari.RATE
        assert all(0 <= word.end <= speech.pcm.size for word in speech.words)


@pytest.mark.parametrize("text", ["您好，早上好。", "🎉🎉", "मस्ते", "((", "..."])
def test_what_is_not_english_is_silence(model: HibariModel, text: str) -> None:
    assert [piece for piece in pieces(text) if model.speak(piece, 1.0).pcm.size] == []


async def test_a_long_text_comes_in_pieces() -> None:
    tts = HibariTts()
    await tts.start()
    text = " ".join([TEXT] * 32)[:2000]
    said = [piece async for piece in tts.speak(text)]
    await tts.close()
    assert len(said) == len(pieces(text)) > 6
    assert all(audible(speech.pcm[:240], 24_000) for speech in said)


# --- nothing is fetched -------------------------------------------------------------------------------------------


async def test_only_the_voice_in_the_package_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where somebody has fetched another by hibari's own command; and none is fetched for its name."""

    def fetch(*asked: object, **options: object) -> None:
        raise AssertionError("a PoP asks no hub")

    monkeypatch.setattr("hibari.voices.download", fetch)
    monkeypatch.setenv("HIBARI_HOME", str(tmp_path))
    (tmp_path / "bf_emma.int8.onnx").write_bytes(b"a model")
    tts = HibariTts()
    await tts.start()
    assert tts.voices() == {"heart": "en-us"} and tts.voice_for("emma") == tts.voice_for("fenrir") == "heart"
    assert (await whole(tts, "Hello.", voice="fenrir")).pcm.size
    await tts.close()


async def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hibari", None)
    tts = HibariTts()
    with pytest.raises(EngineMissing, match="pip install hibari-tts"):
        await tts.start()
    with pytest.raises(EngineError, match="has not been started"):
        await whole(tts, "Hello.")


def test_a_model_that_is_built_in_another_way_is_refused(tmp_path: Path) -> None:
    import hibari as package

    model = onnx.load(Path(package.__file__ or "").parent / "assets" / "hibari.onnx")
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = ["lengths" if name == LENGTHS else name for name in names]
    onnx.save(model, tmp_path / "other.onnx")
    with pytest.raises(EngineMissing, match=r"as constraints\.txt has it"):
        timed(tmp_path / "other.onnx")


async def test_a_broken_file_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hibari, "timed", lambda path: b"no model")
    with pytest.raises(EngineMissing, match="reinstall hibari-tts"):
        await HibariTts().start()


# --- what breaks --------------------------------------------------------------------------------------------------


async def test_a_first_phrase_overtakes_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hibari, "WORKERS", 1)
    tts = HibariTts()
    await tts.start()
    free, done = threading.Event(), list[str]()
    speak = HibariModel.speak

    def slow(model: HibariModel, text: str, speed: float) -> Speech:
        free.wait(20)
        done.append(text)
        return speak(model, text, speed)

    monkeypatch.setattr(HibariModel, "speak", slow)
    async with asyncio.TaskGroup() as group:
        for text in ("running", "later", "later still"):
            group.create_task(whole(tts, text))
        await asyncio.sleep(0.05)
        group.create_task(_first(tts, "first"))
        await asyncio.sleep(0.05)
        free.set()
    await tts.close()
    assert done == ["running", "first", "later", "later still"]


async def _first(tts: HibariTts, text: str) -> None:
    assert [speech async for speech in tts.speak(text, first=True)]


async def test_a_model_that_fails_and_fails_is_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tts = HibariTts()
    await tts.start()
    core = tts.core

    def fail(*given: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(core.model, "_vocoder", fail)
    for _ in range(FAILURES):
        assert tts.alive
        with pytest.raises(EngineError, match="out of memory"):
            await whole(tts, TEXT)
    await until(lambda: not tts.alive)
    with pytest.raises(EngineDead):
        await whole(tts, TEXT)
    await until(lambda: tts.alive)
    assert (await whole(tts, TEXT)).pcm.size and tts.restarts == 1
    await tts.close()


async def test_a_voice_that_hangs_is_down_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    free = threading.Event()
    tts = HibariTts()
    await tts.start()
    core = tts.core
    monkeypatch.setattr(core.model, "_vocoder", lambda *asked: free.wait())
    monkeypatch.setattr(hibari, "STALL_S", 0.05)
    hangs = asyncio.create_task(whole(tts, "Hello."))
    await until(lambda: not tts.alive)
    monkeypatch.setattr(hibari, "STALL_S", 60.0)
    with pytest.raises(EngineDead):
        await hangs
    await until(lambda: tts.alive)
    assert (await whole(tts, "Hello.")).pcm.size and tts.core is not core
    free.set()
    await tts.close()


# --- whether it is understood -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ipa", "sounds"),
    [("ʃɪvˈɔːn", "ʃɪvˈɔn"), ("tʃˈʌmli", "ʧˈʌmli"), ("dʒˈeɪn", "ʤˈAn"), ("lˈɛstər", "lˈɛstəɹ"), ("bˈɑːx", "bˈɑk")],
)
def test_ipa_is_said_by_its_sounds(model: HibariModel, ipa: str, sounds: str) -> None:
    text = f"Ask {BEGINS}{ipa}{ENDS}, please."
    assert (f"{BEGINS}{ipa}{ENDS},", f"{sounds},") in begins(model, text)
    assert [word.text for word in model.speak(text, 1.0).words] == text.split()


async def test_whisper_reads_back_a_name_that_the_agent_says_how_to_say() -> None:
    tts = HibariTts()
    await tts.start()
    own = Pronunciations.of({"Siobhan": "/ʃɪˈvɔːn/", "Cholmondeley": "Chumley"}, ipa=True)
    texts = {"I will put you through to Siobhan.": "siobhan", "We are near Cholmondeley Road.": "chumley road"}
    for text, words in texts.items():
        for said, right in ((own, True), (Pronunciations(), False)):
            spoken = together(speakable.pieces(text, "en", said))
            heard = plain(await read_back.heard(tts, spoken))
            assert (words in heard) == right, heard
    await tts.close()


async def test_whisper_reads_back_what_it_says() -> None:
    texts = read_back.said()[::2]
    assert len(texts) > 60
    tts = HibariTts()
    await tts.start()
    wrong = await read_back.share_wrong(tts, texts)
    await tts.close()
    assert wrong <= 0.05, f"{wrong:.1%} of the words"
