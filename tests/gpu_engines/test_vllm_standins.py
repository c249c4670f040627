"""The stand-ins with torch: they compute what their papers say, and a whole run ends with every figure."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers.models.nemotron_asr_streaming")

from tests.gpu_engines.standins import __main__ as standins  # noqa: E402
from tests.gpu_engines.standins import kokoro  # noqa: E402
from tests.gpu_engines.standins.batching import Batch  # noqa: E402
from tests.gpu_engines.standins.cases import ALONE, ONE, PROCESSES  # noqa: E402
from tests.gpu_engines.standins.child import LanguageChild  # noqa: E402
from tests.gpu_engines.standins.device import Device  # noqa: E402
from tests.gpu_engines.standins.kokoro import Kokoro, TtsShape, lengths  # noqa: E402
from tests.gpu_engines.standins.language import PHRASES, UNHEARD, LanguageLoad  # noqa: E402
from tests.gpu_engines.standins.llama import EPS, ROPE_THETA, TINY, Cache, Llama  # noqa: E402
from tests.gpu_engines.standins.recogniser import Row, StandInRecogniser  # noqa: E402
from tests.gpu_engines.standins.tts import TorchTts  # noqa: E402
from tests.gpu_engines.standins.vocoder import FFT, HOP, _sound, _waves  # noqa: E402
from voicepipe.bench.load import TRAFFIC  # noqa: E402
from voicepipe.sizing.shapes import LLMS, LlmShape  # noqa: E402

pytestmark = pytest.mark.engine

SHAPES = {
    "llama": TINY,
    "qwen2": replace(TINY, qkv_bias=True, kind="qwen2"),
    "qwen3": replace(TINY, qk_norm=True, tied=True, kind="qwen3"),
}


def made(build: Any, scale: float = 0.1) -> Any:
    """A module with weights so large that attention is far from even."""
    module = Device(cuda=False).make(build, torch.float32)
    for weights in module.parameters():
        if weights.dim() > 1:
            weights.mul_(scale / 0.02)
    return module


def count(module: Any) -> int:
    return sum(weights.numel() for weights in module.parameters())


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_decoding_with_a_cache_gives_what_reading_everything_gives(shape: LlmShape) -> None:
    model = made(lambda: Llama(shape))
    tokens, positions = torch.randint(shape.vocab, (3, 20)), torch.arange(20).repeat(3, 1)
    whole = model(tokens, Cache(shape, 3, 32, model.embed.weight), None, positions)
    cache, slots = Cache(shape, 5, 32, model.embed.weight), torch.tensor([2, 0, 1])
    model(tokens[:, :7], cache, slots, positions[:, :7])
    model(tokens[:, 7:12], cache, slots, positions[:, 7:12])
    for at in range(12, 20):
        logits = model(tokens[[1, 2, 0], at : at + 1], cache, None, positions[:, at : at + 1])
    torch.testing.assert_close(logits[slots], whole)


def test_sequences_side_by_side_say_what_each_would_by_itself() -> None:
    batch = Batch(TINY, slots=3, device=Device(cuda=False))
    prompts = torch.randint(TINY.vocab, (3, TRAFFIC.new_tokens))
    told: dict[int, list[int]] = {}
    told[2], told[0] = ([token] for token in batch.admit(prompts[[2, 0]], [2, 0]))
    for step in range(6):
        if step == 2:
            told[1] = batch.admit(prompts[[1]], [1])
        tokens = batch.step(tuple(told))
        for slot in told:
            told[slot].append(tokens[slot])
    for slot, said in told.items():
        whole = torch.cat([batch.cached, prompts[slot], torch.tensor(said[:-1])])[None]
        cache = Cache(TINY, 1, whole.shape[1], batch.model.embed.weight)
        for count in range(1, len(said) + 1):
            upto = whole[:, : whole.shape[1] - len(said) + count]
            assert batch.model(upto, cache, None, torch.arange(upto.shape[1])[None]).argmax() == said[count - 1]


@pytest.mark.parametrize("name", standins.MODELS)
def test_every_language_model_has_its_number_of_weights(name: str) -> None:
    with torch.device("meta"):
        assert count(Llama(LLMS[name])) == LLMS[name].weights


def test_kokoro_has_the_published_number_of_weights_but_for_a_pooler() -> None:
    with torch.device("meta"):
        assert count(Kokoro(TtsShape())) + 768 * 769 == pytest.approx(81_763_410, rel=0.001)


@pytest.mark.parametrize("kind", SHAPES)
def test_the_language_model_computes_what_transformers_computes(kind: str) -> None:
    transformers = pytest.importorskip("transformers")
    shape = SHAPES[kind]
    ours = made(lambda: Llama(shape))
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=shape.vocab, hidden_size=shape.dim, intermediate_size=shape.ffn, rms_norm_eps=EPS,
        num_hidden_layers=shape.layers, num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim, rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA},
        tie_word_embeddings=shape.tied,
    )  # fmt: skip
    theirs = transformers.AutoModelForCausalLM.from_config(config).eval()
    weights = {"model.embed_tokens.weight": ours.embed.weight, "model.norm.weight": ours.norm.weight}
    weights["lm_head.weight"] = ours.embed.weight if shape.tied else ours.head.weight
    heads, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    for number, layer in enumerate(ours.layers):
        at = f"model.layers.{number}"
        for name, part in layer.attention.qkv.named_parameters():
            for letter, piece in zip("qkv", part.split([heads, kv, kv]), strict=True):
                weights[f"{at}.self_attn.{letter}_proj.{name}"] = piece
        weights[f"{at}.self_attn.o_proj.weight"] = layer.attention.out.weight
        for name, part in layer.attention.named_parameters():
            if name.endswith("_norm.weight"):
                weights[f"{at}.self_attn.{name}"] = part
        gate, up = layer.gate_up.weight.chunk(2)
        weights |= {f"{at}.mlp.gate_proj.weight": gate, f"{at}.mlp.up_proj.weight": up}
        weights |= {f"{at}.mlp.down_proj.weight": layer.down.weight}
        weights[f"{at}.input_layernorm.weight"] = layer.attention_norm.weight
        weights[f"{at}.post_attention_layernorm.weight"] = layer.mlp_norm.weight
    theirs.load_state_dict(weights)
    tokens = torch.randint(shape.vocab, (2, 20))
    logits = ours(tokens, Cache(shape, 2, 32, ours.embed.weight), None, torch.arange(20).repeat(2, 1))
    torch.testing.assert_close(logits, theirs(tokens).logits[:, -1], rtol=1e-4, atol=1e-4)


def test_the_vocoders_transform_is_undone() -> None:
    sound = 0.1 * torch.randn(1, 200)
    waves, hann = _waves(torch.device("cpu"))
    spectrum = torch.stft(sound, FFT, HOP, window=hann, return_complex=True)
    torch.testing.assert_close(_sound(spectrum.real, spectrum.imag, waves, hann), sound)


def test_a_phrase_is_as_long_as_it_should_be() -> None:
    shape = kokoro.TINY
    phonemes, frames = lengths(1.2)
    model = made(lambda: Kokoro(shape))
    speech = model(torch.randint(shape.symbols, (2, phonemes)), torch.randn(2, 2 * shape.style), frames)
    assert speech.shape == (2, 28_800)
    assert speech.isfinite().all() and speech.std() > 0


async def test_speech_of_numbers_that_are_not_finite_counts_as_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    voice = TorchTts(kokoro.TINY, Device(cuda=False))
    await voice.speak(first=True)
    assert voice.silent == 0
    monkeypatch.setattr(Kokoro, "forward", lambda self, *given: torch.full((1, 100), torch.nan))
    await voice.speak(first=True)
    assert voice.silent == 1


def test_the_phrases_of_a_reply_that_was_asked_for_are_told() -> None:
    told: list[tuple[int, int]] = []
    language = LanguageLoad(Device(cuda=False), TINY, told=lambda now, phrases: told.extend(phrases))
    language.start(0.0)
    for turn in range(5):
        language.ask(turn, time.monotonic())
    until = time.monotonic() + 60
    while len(told) < 5 * len(PHRASES) and time.monotonic() < until:
        time.sleep(0.01)
    replies = language.stop()
    assert sorted(told) == [(turn, place) for turn in range(5) for place in range(len(PHRASES))]
    assert len(replies.first_phrase) == 5
    assert (PHRASES[0], PHRASES[-1]) == (TRAFFIC.phrase.tokens, TRAFFIC.reply_tokens)


def test_a_settle_reads_a_call_and_leaves_it_as_it_was() -> None:
    recogniser = StandInRecogniser(Device(cuda=False), tiny=True, calls=2, spare=1)
    spare, before = recogniser.spare[0], recogniser.slots.kv.clone()
    said = recogniser.hear([Row(0, spare, silent=True), Row(1, 1, silent=False)])
    changed = (recogniser.slots.kv != before).flatten(3).any(-1).any(0).any(0)
    assert len(said) == 2 and recogniser.slots.finite
    assert changed.tolist() == [False, True, True, False]


def test_a_language_model_in_a_process_of_its_own_that_ends_is_an_error() -> None:
    child = LanguageChild(TINY, cuda=False)
    assert child.ready(timeout_s=120) == []
    child.start(lead_s=0.0)
    after = time.monotonic() + 60  # when it began there
    child.ask(UNHEARD, after)
    child.ask(7, after)
    whole = [child.phrases.recv()[1] for _ in PHRASES]
    assert whole == [[(7, place)] for place in range(len(PHRASES))]
    assert len(child.stop().first_phrase) == 2
    child.kill()
    with pytest.raises((BrokenPipeError, EOFError)):
        child.stop()


ROOT = Path(__file__).parents[2]
OURS = ("msgspec", "uvloop", "faster_whisper", "vllm", "av", "httpx", "starlette")
SCRIPT = f"""
import sys

class Missing:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] in {OURS}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
sys.path.insert(0, {str(ROOT)!r})

from tests.gpu_engines.standins.__main__ import main
# before

if __name__ == "__main__":
    sys.exit(main())
"""


def measured(folder: Path, *options: str, before: str = "") -> tuple[str, dict[str, Any]]:
    """What is printed, and the file. As on a machine with a GPU on which nothing of ours is installed."""
    file, script = folder / "figures.json", folder / "only_torch.py"
    script.write_text(SCRIPT.replace("# before", before))
    line: list[str | Path] = [sys.executable, script, file, "--tiny", *options]
    printed = subprocess.run(line, cwd=folder, capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    return printed.stdout, json.loads(file.read_text())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_is_only_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figures.json"
    with pytest.raises(SystemExit):
        standins.main([str(file)])
    said = capsys.readouterr().err
    assert "torch sees no GPU" in said and "--tiny" in said and not file.exists()


def test_a_recogniser_beside_a_language_model_and_a_voice(tmp_path: Path) -> None:
    printed, told = measured(tmp_path, "--voice", "beside", "--calls", "8", "--budget-s", "90")
    assert "end of speech to first sound: of each turn by itself" in printed
    assert told["about"]["voice"].startswith("stand-in: tiny") and told["about"]["voice_priority"] == "beside"
    assert {name: each["count"] for name, each in told["about"]["voice_alone_ms"].items()} == {"first": 20, "later": 20}
    assert {(step["mode"], step["rows"]) for step in told["steps"]} >= {("graph", 1), ("eager", 64)}
    (case,) = told["cases"]
    assert case["voice"] and case["rounds"] == 3 and case["errors"] == []
    assert case["turn_ms"]["count"] == case["voice_first_ms"]["count"] > 0
    assert case["turn_ms"]["p50"] >= 160 and case["voice_later_ms"]["count"] > 0


def test_a_recogniser_alone_and_beside_a_language_model_in_its_own_process(tmp_path: Path) -> None:
    _, told = measured(tmp_path, "--calls", "4", "--budget-s", "90")
    alone, processes, one = told["cases"]
    assert [case["where"] for case in told["cases"]] == [ALONE, PROCESSES, ONE]
    for case in told["cases"]:
        assert case["rounds"] == 3 and case["errors"] == [] and case["settle_ms"]["count"] > 0
    assert "llm_first_phrase_ms" not in alone
    assert processes["llm_first_phrase_ms"]["count"] > 0 and one["llm_first_phrase_ms"]["count"] > 0


def test_without_its_voice_it_says_why_and_goes_on(tmp_path: Path) -> None:
    broken = "from tests.gpu_engines.standins.kokoro import Kokoro; del Kokoro.forward"
    _, told = measured(tmp_path, "--voice", "behind", "--calls", "4,8", "--budget-s", "60", before=broken)
    assert [case["errors"][0].partition(":")[0] for case in told["cases"]] == ["NotImplementedError"] * 2
