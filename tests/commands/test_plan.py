"""`voicepipe plan`, as someone at a terminal meets it."""

import json
import re
from pathlib import Path

import pytest

from tests.commands.planning import PRICED, SHORT, said, unwrapped
from tests.support.paths import ROOT
from voicepipe.sizing.gpu_models import GPUS, LINKS
from voicepipe.sizing.host import SizedHost
from voicepipe.sizing.language import ParallelGroup
from voicepipe.sizing.prediction import BEFORE_COMPUTE_MS
from voicepipe.sizing.recognition import Nemotron
from voicepipe.sizing.shapes import LLMS
from voicepipe.sizing.traffic import Traffic
from voicepipe.sizing.turn import capacity
from voicepipe.sizing.voices import voice


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100:2", "--calls", "4")
    assert status == 0
    assert "qwen3-8b: 8.19 billion weights (bf16 15.3, fp8 8.8, awq4 5.7 GiB)" in out
    assert "KV cache: 144 KiB a token, 288 MiB a call of 2048 tokens" in out
    assert "2 x H100 by NVLink: 79.6 GiB, 3.35 TB/s" in out
    assert "bf16, TP 2" in out
    assert "- It fits on one card: do not shard." in out
    assert "- bf16, one GPU is advised: of the ways that answer 4 calls in time, " in out
    assert "- Calls in time with one change from bf16, one GPU: " in out, (
        "also where all that were asked for are answered"
    )
    assert '[vllm]\nmodel = "Qwen/Qwen3-8B"\ntensor_parallel_size = 1\n' in out
    assert "[pop]\nslots = 4  #" in out
    assert "predicted, from data sheets" in out


def test_a_known_model_by_its_name_on_the_hub(capsys: pytest.CaptureFixture[str]) -> None:
    by_hub, by_name = (said(capsys, "--model", name, "--gpus", "H100") for name in ("Qwen/Qwen3-8B", "qwen3-8b"))
    assert by_hub == by_name
    for name in ("Llama-3.3-70B-Instruct", "Meta-Llama-3-8B-Instruct"):
        status, out, _ = said(capsys, "--model", name, "--gpus", "B200:4")
        assert status == 0 and "billion weights" in out


def test_a_quantised_copy_by_its_name_on_the_hub(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "--model", "Qwen/Qwen3-8B-AWQ", "--gpus", "H100")
    assert "bf16, one GPU" not in out and 'model = "Qwen/Qwen3-8B-AWQ"\n' in out
    _, out, _ = said(capsys, "--model", "Qwen/Qwen3-8B-FP8", "--gpus", "H100")
    assert "awq4" not in out and 'model = "Qwen/Qwen3-8B-FP8"\n' in out and "args.quantization" not in out


def test_a_name_that_is_misspelt(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = said(capsys, "--model", "quen3-8b", "--gpus", "H100")
    assert status == 2 and "--model: quen3-8b: did you mean qwen3-8b? give the path" in err
    _, _, err = said(capsys, "--model", "qwen3-8b", "--gpus", "H10")
    assert "--gpus: H10: no data sheet of it; did you mean H100? known: " in err and err.endswith(" (two: H100:2)\n")


def test_for_other_programs(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "--model", "llama-3.1-70b", "--gpus", "H100:2", "--calls", "64", "--json")
    facts = json.loads(out)
    assert facts["model"]["kv_bytes_a_token"] == 320 * 1024
    assert {option["name"] for option in facts["options"]} >= {"bf16, one GPU", "bf16, TP 2", "awq4, one GPU"}
    assert facts["options"][0]["fits"] is False
    assert facts["best"] is None, "no way answers a call in time"
    assert facts["advice"]
    _, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100", "--json")
    facts = json.loads(out)
    assert facts["best"] in {option["name"] for option in facts["options"]}
    assert facts["options"][0]["turn_ms"]["slow"]["llm"] > 1


def test_what_answers_no_call_is_not_recommended(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "L4")
    assert status == 1
    assert "Not even one call is answered within 300 ms" in out and "[vllm]" not in out and "busy" not in out


def test_first_phrases_that_are_short(capsys: pytest.CaptureFixture[str]) -> None:
    """Told to `plan`, printed for the configuration, and named where it would help."""
    argv = ("--model", "qwen3-8b", "--gpus", "H100")
    _, usual, _ = said(capsys, *argv)
    assert "80 ms after commit one that is not whole is cut after 6 tokens and 1.7 s" in unwrapped(usual)
    assert 'ladder.first_phrase = "short" 16' in usual and "[ladder]" not in usual
    _, out, _ = said(capsys, *argv, *SHORT)
    assert '\n[ladder]\nfirst_phrase = "short"\n\n[vllm]\n' in out
    assert "after commit" not in out and 'ladder.first_phrase = "short" 16' not in out
    assert 'the first phrase 6 of them and 1.7 s long (ladder.first_phrase = "short").' in unwrapped(out)
    assert all(few < more for few, more in zip(calls_in_time(capsys), calls_in_time(capsys, *SHORT), strict=True))


def test_thirty_calls_of_an_8b_model_on_one_h100(capsys: pytest.CaptureFixture[str]) -> None:
    """With engines that stream: with MPS whatever the weights, without it in AWQ."""
    argv = ("--model", "llama-3.1-8b", "--gpus", "H100", "--calls", "30", "--tts", "neutts", "--json")
    with_mps, without = (json.loads(said(capsys, *argv, *more)[1])["options"] for more in (("--mps",), ()))
    by_name = {option["dtype"]: option["calls_in_time"] for option in with_mps}
    assert min(by_name.values()) >= 30 and by_name.keys() == {"bf16", "fp8", "awq4"}
    assert {option["dtype"]: option["calls_in_time"] for option in without}["awq4"] >= 30


def test_on_small_cards_kokoro_answers_more(capsys: pytest.CaptureFixture[str]) -> None:
    """As pops/gpu.md says."""
    most = {}
    for model in ("llama-3.1-8b", "qwen3-4b"):
        for gpu in ("L4", "A10", "RTX-4090"):
            for tts in ("kokoro", "neutts"):
                argv = ("--model", model, "--gpus", gpu, "--tts", tts, "--mps", *SHORT, "--json")
                options = json.loads(said(capsys, *argv)[1])["options"]
                most[model, gpu, tts] = max(option["calls_in_time"] for option in options)
            kokoro, neutts = most[model, gpu, "kokoro"], most[model, gpu, "neutts"]
            assert kokoro > neutts or kokoro == neutts == 0


def calls_in_time(capsys: pytest.CaptureFixture[str], *more: str) -> list[int]:
    """Of Llama 3.1 8B on one H100, with weights in bf16, fp8 and AWQ."""
    _, out, _ = said(capsys, "--model", "llama-3.1-8b", "--gpus", "H100", *more, "--json")
    return [option["calls_in_time"] for option in json.loads(out)["options"]]


def test_what_else_would_lift_it() -> None:
    """The table in `sizing/README.md`: what `nemotron.gather_ms` and a shorter first phrase do."""
    page = (ROOT / "voicepipe" / "sizing" / "README.md").read_text()
    group = ParallelGroup(LLMS["llama-3.1-8b"], "bf16", GPUS["h100"], LINKS["nvlink"])
    for row, asr, traffic in (
        ("today (`ladder.short_phrase_ms = 80`)", Nemotron(), Traffic()),
        (
            "the recogniser's steps as soon as a chunk is due (`nemotron.gather_ms = 0`)",
            Nemotron(gather_ms=0),
            Traffic(),
        ),
        ("without the deadline (`ladder.short_phrase_ms = 0`)", Nemotron(), Traffic(short_phrase_ms=0)),
        ('short first phrases from the start (`ladder.first_phrase = "short"`)', Nemotron(), Traffic().cut_short()),
    ):
        ways = [(voice(name), mps) for name in ("kokoro", "neutts") for mps in (False, True)]
        calls = [capacity(SizedHost(group, 1, asr, tts, mps, traffic=traffic), 220)[0] for tts, mps in ways]
        assert f"| {row} | {' | '.join(map(str, calls))} |" in page


def test_a_models_own_config_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 500,
              "quantization_config": {"quant_method": "awq"}}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    for model in (tmp_path, tmp_path / "config.json"):
        status, out, _ = said(capsys, "--model", str(model), "--gpus", "H100", "--tts", "coqui", "--asr", "small")
        assert status == 0
        assert "awq4, one GPU" in out and "bf16, one GPU" not in out
        assert f'model = "{tmp_path}"\n' in out, "it is quantised already"


def test_the_answer_by_hand_is_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "voicepipe" / "sizing" / "README.md").read_text()
    (command,) = re.findall(r"^`voicepipe plan (.*)`: Llama", page, re.MULTILINE)
    _, out, _ = said(capsys, *command.split(), "--json")
    option = json.loads(out)["options"][0]
    at = option["turn_ms"]
    said_there = dict(re.findall(r"^\| (.*?) \| .* \| (?:x )?([\d.]+)(?: ms| GiB)? \|$", page, re.MULTILINE))
    assert said_there.items() >= {
        "memory": f"{option['llm_bytes_a_gpu'] / 2**30:.1f}", "sharing": f"{at['slow']['llm']:.2f}",
        "a token": f"{at['token']:.1f}", "first token": f"{at['first_token']:.1f}",
        "first phrase": f"{at['first_phrase']:.1f}", "ASR": f"{at['asr']:.1f}", "TTS": f"{at['tts']:.1f}",
        "a turn": f"{BEFORE_COMPUTE_MS + option['compute_ms']:.0f}",
        "its p95": f"{BEFORE_COMPUTE_MS + option['compute_p95_ms']:.0f}",
    }.items()  # fmt: skip


def test_what_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "--model", "llama-3.1-70b", "--gpus", "A10", "--interconnect", "pcie")
    assert status == 1
    assert "does not fit" in out and "[vllm]" not in out


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (
            ("--model", "gpt-9", "--gpus", "L4"),
            "--model: gpt-9: give the path of a config.json or of a directory with one",
        ),
        (("--model", "qwen3-8b", "--gpus", "TPU"), "--gpus: TPU: no data sheet of it; known: B200, H200, H100"),
        (("--model", "qwen3-8b", "--gpus", "L4", "--calls", "0"), "--calls: 0: give at least 1"),
        (("--model", __file__, "--gpus", "L4"), "cannot be read: "),
        ((*PRICED[:-1], "-1"), "--price: -1: give what the host costs an hour, from 0.000001 to 1000000000"),
        ((*PRICED[:-1], "nan"), "--price: nan: give what the host costs an hour"),
        ((*PRICED, "--hosted", "0"), "--hosted: 0: give what a minute costs at the hosted API, from 0.000001"),
        (("--model", "qwen3-8b", "--gpus", "L4,H100", "--json"), "--gpus: several are compared in one table"),
        ((*PRICED[:-2], "--hosted", "0.06"), "--hosted: is compared with what the host costs an hour; give that as"),
    ],
)
def test_what_cannot_be_planned(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], error: str) -> None:
    status, _, err = said(capsys, *argv)
    assert status == 2
    assert error in err and err.count("\n") == 1
