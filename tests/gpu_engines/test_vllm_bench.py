"""`bench engines` with torch: the stand-ins compute what their papers say, and a whole run ends with every figure."""

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import aclosing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from voicepipe.bench.engines.figures import ASR_FINAL, CLOCK, COMPUTE, LLM_FIRST, NAMES, TTS_FIRST  # noqa: E402
from voicepipe.bench.engines.load import PHRASES, TRAFFIC  # noqa: E402
from voicepipe.bench.engines.shapes import TINY_LLM, TTSS  # noqa: E402
from voicepipe.bench.engines.standins.apart import LanguageApart  # noqa: E402
from voicepipe.bench.engines.standins.batching import Batch  # noqa: E402
from voicepipe.bench.engines.standins.device import Device  # noqa: E402
from voicepipe.bench.engines.standins.kokoro import Kokoro, lengths  # noqa: E402
from voicepipe.bench.engines.standins.llama import EPS, KINDS, ROPE_THETA, Cache, Llama  # noqa: E402
from voicepipe.bench.engines.standins.llm import TorchLlm  # noqa: E402
from voicepipe.bench.engines.standins.streaming import __main__ as streaming  # noqa: E402
from voicepipe.bench.engines.standins.streaming.language import LanguageLoad  # noqa: E402
from voicepipe.bench.engines.standins.tts import TorchTts  # noqa: E402
from voicepipe.bench.engines.standins.vocoder import FFT, HOP, _sound, _waves  # noqa: E402
from voicepipe.bench.engines.standins.whisper import Mel, Whisper  # noqa: E402
from voicepipe.commands.cli import main  # noqa: E402
from voicepipe.errors import EngineError  # noqa: E402
from voicepipe.sizing.shapes import ASRS, LLMS, AsrShape, LlmShape  # noqa: E402

pytestmark = pytest.mark.engine

SHAPES = {
    "llama": TINY_LLM,
    "qwen2": replace(TINY_LLM, qkv_bias=True, kind="qwen2"),
    "qwen3": replace(TINY_LLM, qk_norm=True, tied=True, kind="qwen3"),
}
WHISPER = AsrShape(mels=80, dim=64, heads=4, layers=2, decoder_layers=2, vocab=51_865)


def made(build: Any, scale: float = 0.1) -> Any:
    """A module with weights so large that attention is far from even."""
    module = Device("cpu").make(build, torch.float32)
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
    batch = Batch(TINY_LLM, slots=3, device=Device("cpu"))
    prompts = torch.randint(TINY_LLM.vocab, (3, TRAFFIC.new_tokens))
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
        cache = Cache(TINY_LLM, 1, whole.shape[1], batch.model.embed.weight)
        for count in range(1, len(said) + 1):
            upto = whole[:, : whole.shape[1] - len(said) + count]
            assert batch.model(upto, cache, None, torch.arange(upto.shape[1])[None]).argmax() == said[count - 1]


async def test_the_language_model_serves_more_replies_than_it_has_slots_and_forgets_those_that_are_aborted() -> None:
    llm = TorchLlm("tiny", TINY_LLM, slots=2, device=Device("cpu"))

    async def reply(call: int) -> int:
        async with aclosing(llm.reply(call)) as counts:
            async for count in counts:
                if call == 1 and count >= 3:  # A slow machine may tell several at once.
                    break
        return count

    async with asyncio.timeout(60):
        counts = await asyncio.gather(*(reply(call) for call in range(5)))
    assert counts.pop(1) >= 3
    assert counts == [TRAFFIC.reply_tokens] * 4
    llm.close()


@pytest.mark.parametrize("name", [name for name, shape in LLMS.items() if shape.kind in KINDS])
def test_every_language_model_has_its_number_of_weights(name: str) -> None:
    with torch.device("meta"):
        assert count(Llama(LLMS[name])) == LLMS[name].weights


@pytest.mark.parametrize("name", ASRS)
def test_every_whisper_has_its_number_of_weights(name: str) -> None:
    with torch.device("meta"):
        assert count(Whisper(ASRS[name])) == ASRS[name].weights


def test_kokoro_has_the_published_number_of_weights_but_for_a_pooler() -> None:
    with torch.device("meta"):
        assert count(Kokoro(TTSS["kokoro-82m"])) + 768 * 769 == pytest.approx(81_763_410, rel=0.001)


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


def test_whisper_computes_what_transformers_computes() -> None:
    transformers = pytest.importorskip("transformers")
    ours = made(lambda: Whisper(WHISPER))
    config = transformers.WhisperConfig(
        vocab_size=WHISPER.vocab, num_mel_bins=80, d_model=64, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=256,
        decoder_ffn_dim=256, encoder_attention_heads=4, decoder_attention_heads=4,
    )  # fmt: skip
    theirs = transformers.WhisperForConditionalGeneration(config).eval()
    renamed = {}
    for name, weights in ours.state_dict().items():
        for old, new in (
            ("positions", "embed_positions.weight"), ("embed.weight", "embed_tokens.weight"),
            (".attention_norm.", ".self_attn_layer_norm."), (".attention.", ".self_attn."), (".query.", ".q_proj."),
            (".key.", ".k_proj."), (".value.", ".v_proj."), (".out.", ".out_proj."), (".mlp.0.", ".fc1."),
            (".mlp.2.", ".fc2."), (".mlp_norm.", ".final_layer_norm."), (".cross_norm.", ".encoder_attn_layer_norm."),
            (".cross.", ".encoder_attn."), ("coder.norm.", "coder.layer_norm."),
        ):  # fmt: skip
            name = name.replace(old, new)
        renamed[f"model.{name}"] = weights
    renamed["proj_out.weight"] = ours.decoder.embed.weight
    theirs.load_state_dict(renamed)
    mel, prompt = torch.randn(2, 80, 3000), torch.tensor([[50_258, 50_259, 50_359, 50_363]] * 2)
    tokens = prompt
    for _ in range(5):
        likeliest = theirs(input_features=mel, decoder_input_ids=tokens).logits[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, likeliest], 1)
    assert ours.read(mel, prompt, 5).tolist() == tokens[:, 4:].tolist()


def test_the_mel_spectrum_is_torchs_own_in_mel_bands() -> None:
    sound = torch.randn(2, 16_000)
    mel = Mel(80, torch.device("cpu"))
    spectrum = torch.stft(sound, 400, 160, window=torch.hann_window(400), return_complex=True, pad_mode="constant")
    power = spectrum[:, :, :-1].abs().square().transpose(1, 2) @ mel.bands
    log = power.clamp(min=1e-10).log10()
    expected = (torch.maximum(log, log.amax((1, 2), keepdim=True) - 8) + 4) / 4
    torch.testing.assert_close(mel(sound), expected.transpose(1, 2), rtol=1e-3, atol=1e-3)


def test_the_vocoders_transform_is_undone() -> None:
    sound = 0.1 * torch.randn(1, 200)
    waves, hann = _waves(torch.device("cpu"))
    spectrum = torch.stft(sound, FFT, HOP, window=hann, return_complex=True)
    torch.testing.assert_close(_sound(spectrum.real, spectrum.imag, waves, hann), sound)


def test_a_phrase_is_as_long_as_it_should_be() -> None:
    shape = TTSS["tiny"]
    phonemes, frames = lengths(1.2)
    model = made(lambda: Kokoro(shape))
    speech = model(torch.randint(shape.symbols, (2, phonemes)), torch.randn(2, 2 * shape.style), frames)
    assert speech.shape == (2, 28_800)
    assert speech.isfinite().all() and speech.std() > 0


async def test_speech_of_numbers_that_are_not_finite_counts_as_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    voice = TorchTts("tiny", TTSS["tiny"], Device("cpu"))
    await voice.speak(0, first=True)
    assert voice.silent == 0
    monkeypatch.setattr(Kokoro, "forward", lambda self, *given: torch.full((1, 100), torch.nan))
    await voice.speak(0, first=True)
    assert voice.silent == 1
    voice.close()


def test_the_phrases_of_a_reply_that_was_asked_for_are_told() -> None:
    told: list[tuple[int, int]] = []
    language = LanguageLoad(Device("cpu"), tiny=True, told=lambda now, phrases: told.extend(phrases))
    language.start(0.0, 0.0, seed=1)
    for turn in range(5):
        language.ask(turn, time.monotonic())
    until = time.monotonic() + 60
    while len(told) < 5 * len(PHRASES) and time.monotonic() < until:
        time.sleep(0.01)
    replies = language.stop()
    assert sorted(told) == [(turn, place) for turn in range(5) for place in range(len(PHRASES))]
    assert len(replies.first_phrase) == 5


ROOT = Path(__file__).parents[2]
REAL = find_spec("vllm") and find_spec("faster_whisper")


@pytest.mark.parametrize(
    ("options", "instead"),
    [
        (["--shape", "llama-9"], "llama-3.1-8b"), (["--device", "cuda:99"], "auto, cpu"),
        (["--asr-window", "31"], "from 1 to 30"), (["--seconds", "0.5"], "1 second or more"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused(
    options: list[str], instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "engines", "--stand-ins", *options]) == 2
    assert " ".join(options) in (said := capsys.readouterr().err) and instead in said


def benched(file: Path, *options: str) -> tuple[str, dict[str, Any]]:
    """The table and all figures. vLLM's engine has a process of its own, as on a GPU, though it costs a CPU more."""
    line = [sys.executable, "-m", "voicepipe", "bench", "engines", *options, "--table", "--json", str(file)]
    environment = os.environ | {"VLLM_ENABLE_V1_MULTIPROCESSING": "1"}
    printed = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert printed.returncode == 0, printed.stderr
    return printed.stdout, json.loads(file.read_text())["figures"]


def check(told: dict[str, Any]) -> None:
    assert [(result["calls"], result["idle_gaps"]) for result in told["results"]] == [(2, True), (2, False)]
    for result in told["results"]:
        assert result["turns"] > 0
        assert {ASR_FINAL, LLM_FIRST, TTS_FIRST, COMPUTE, CLOCK} <= set(result["together"]) <= {*NAMES}
        assert {LLM_FIRST, TTS_FIRST, CLOCK} <= set(result["alone"])


@pytest.mark.skipif(not REAL, reason="vLLM is not installed")
def test_real_engines_of_a_shape(tmp_path: Path) -> None:
    shapes = ["--shape", "tiny", "--asr-shape", "tiny", "--device", "cpu", "--calls", "2", "--seconds", "5"]
    table, told = benched(tmp_path / "figures.json", *shapes, "--rounds", "1")
    assert "| turn compute (with stand-ins) |" in table and "| LLM, first token |" in table
    assert told["engines"]["asr"].startswith("faster-whisper: tiny") and told["engines"]["llm"].startswith("vLLM: tiny")
    assert any("EngineCor" in name for name in told["processes"])
    check(told)


ONLY_TORCH = """
import sys

class Missing:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] in {"msgspec", "uvloop", "faster_whisper", "vllm", "av", "httpx"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
sys.path.insert(0, sys.argv[2])

from voicepipe.bench.engines.chosen import Options
from voicepipe.bench.engines.run import run
from pathlib import Path

if __name__ == "__main__":
    options = Options(llm="tiny", asr="tiny", tts="tiny", calls=(2,), seconds=5.0, window_s=3, device="cpu",
                      standins=True, seed=1, rounds=1)
    sys.exit(run(options, Path(sys.argv[1]), markdown=True))
"""


def test_stand_ins_where_only_torch_is(tmp_path: Path) -> None:
    """As on a machine with a GPU on which nothing of ours is installed."""
    file, script = tmp_path / "figures.json", tmp_path / "only_torch.py"
    script.write_text(ONLY_TORCH)
    printed = subprocess.run([sys.executable, script, file, ROOT], capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    assert "| LLM, first token (stand-in) |" in printed.stdout
    told = json.loads(file.read_text())["figures"]
    assert told["engines"]["llm"].startswith("stand-in in a process of its own: tiny")
    assert told["engines"]["asr"].startswith("stand-in: Whisper tiny") and told["processes"]
    check(told)


async def test_a_language_model_in_a_process_of_its_own_that_ends_is_an_error() -> None:
    apart = LanguageApart("tiny", TINY_LLM, 2, "cpu")
    await apart.start()
    assert "stand-in in a process of its own: tiny" in apart.name
    async with asyncio.timeout(60):
        async with aclosing(apart.reply(0, guess=False)) as deltas:
            text = "".join([delta async for delta in deltas])
        assert len(text.split()) == TRAFFIC.reply_tokens
        async with aclosing(apart.reply(0, guess=True)) as deltas:
            assert await anext(deltas)
        apart._process.kill()
        with pytest.raises(EngineError, match="stand-in for the language model ended"):
            async with aclosing(apart.reply(1, guess=False)) as deltas:
                async for _ in deltas:
                    pass
    apart.close()


STREAMING = "voicepipe.bench.engines.standins.streaming"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_streaming_recogniser_is_only_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("transformers.models.nemotron_asr_streaming")
    file = tmp_path / "figures.json"
    with pytest.raises(SystemExit):
        streaming.main([str(file)])
    said = capsys.readouterr().err
    assert "torch sees no GPU" in said and "--tiny" in said and not file.exists()


def test_a_streaming_recogniser_beside_a_language_model_and_a_voice(tmp_path: Path) -> None:
    pytest.importorskip("transformers.models.nemotron_asr_streaming")
    file = tmp_path / "figures.json"
    options = ["--tiny", "--voice", "beside", "--calls", "8", "--budget-s", "90"]
    line = [sys.executable, "-m", STREAMING, str(file), *options]
    printed = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    assert "end of speech to first sound: of each turn by itself" in printed.stdout
    told = json.loads(file.read_text())
    assert told["about"]["voice"].startswith("stand-in: tiny") and told["about"]["voice_priority"] == "beside"
    assert {name: each["count"] for name, each in told["about"]["voice_alone_ms"].items()} == {"first": 20, "later": 20}
    (case,) = told["cases"]
    assert case["voice"] and case["rounds"] == 3 and case["errors"] == []
    assert case["turn_ms"]["count"] == case["voice_first_ms"]["count"] > 0
    assert case["turn_ms"]["p50"] >= 160 and case["voice_later_ms"]["count"] > 0


def test_without_its_voice_the_streaming_recogniser_says_why_and_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("transformers.models.nemotron_asr_streaming")
    file = tmp_path / "figures.json"
    options = ["--tiny", "--voice", "behind", "--calls", "4,8", "--budget-s", "60"]
    code = f"import sys; from {STREAMING} import __main__, run; run.TTSS = {{}}; sys.exit(__main__.main())"
    printed = subprocess.run(
        [sys.executable, "-c", code, str(file), *options], cwd=ROOT, capture_output=True, text=True
    )
    assert printed.returncode == 0, printed.stderr
    told = json.loads(file.read_text())
    assert told["about"]["voice_error"] == "KeyError: 'tiny'"
    assert [case["errors"][0] for case in told["cases"]] == ["KeyError: 'tiny'"] * 2
