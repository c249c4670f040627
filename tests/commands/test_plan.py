"""`voicepipe plan`, as someone at a terminal meets it."""

import json
import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from voicepipe.commands import cli
from voicepipe.sizing.gpu_models import GPUS, LINKS
from voicepipe.sizing.host import SizedHost
from voicepipe.sizing.language import Group
from voicepipe.sizing.prediction import BEFORE_COMPUTE_MS, NOMINAL_MS
from voicepipe.sizing.recognition import Nemotron
from voicepipe.sizing.shapes import LLMS
from voicepipe.sizing.traffic import Traffic
from voicepipe.sizing.turn import most_calls
from voicepipe.sizing.voices import voice


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.main(["plan", *argv])
    return status, *capsys.readouterr()


def unwrapped(out: str) -> str:
    """One line, whatever the terminal's width."""
    return " ".join(out.split())


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


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_a_narrow_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100")
    table = [line for line in out.splitlines() if line.startswith(("bf16, one GPU", "fp8, one GPU", "awq4, one GPU"))]
    assert len(table) == 3 and all(line.split()[-1] in {"recognition", "synthesis", "language"} for line in table)


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


SHORT = ("--first-phrase", "short")
PRICED = ("--model", "qwen3-8b", "--gpus", "H100", "--price", "2.5")


def test_what_a_minute_of_call_costs(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, *PRICED)
    assert "What a minute of call costs, at 2.5 an hour for the host. 50 % used: half of its calls in time" in out
    assert "awq4, one GPU             8    0.00521    0.0104    0.0208 \n" in out, "2.5 / 60 / 8, / 4, / 2"
    assert "\nprice_per_hour = 2.5\n" in out
    assert "break-even" not in out and "hosted" not in out, "nobody asked"
    _, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100")
    assert "cost" not in out.lower() and "price_per_hour" not in out


def test_from_how_many_calls_on_the_host_is_cheaper(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, *PRICED, "--hosted", "0.06")
    assert "awq4, one GPU             8    0.00521    0.0104    0.0208        9 % \n" in out
    assert (
        "- Break-even with a hosted API at 0.06 a minute: 0.694 calls in progress on average, or 1,000 minutes of "
        "call a day: 9 % of what the host answers in time (awq4, one GPU)."
    ) in unwrapped(out)


def test_a_hosted_api_that_is_always_cheaper(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, *PRICED, "--hosted", "0.002")
    assert out.count(" never \n") == 3 and "is cheaper than the hosted API; never: it is not." in unwrapped(out)
    assert (
        "- Break-even with a hosted API at 0.002 a minute: 20.8 calls in progress on average, or 30,000 minutes of "
        "call a day: more than what the host answers in time (awq4, one GPU): the hosted API is always cheaper."
    ) in unwrapped(out)


@pytest.mark.parametrize("model", ["qwen3-8b", "llama-3.1-70b"], ids=["too late", "does not fit"])
def test_a_host_that_answers_no_call_in_time_has_no_cost_a_minute(
    capsys: pytest.CaptureFixture[str], model: str
) -> None:
    argv = ("--model", model, "--gpus", "L4", "--price", "0.8", "--hosted", "0.06")
    _, out, _ = said(capsys, *argv)
    assert (
        "- No call is answered in time on this host, so there is neither a cost of a minute nor a break-even."
        in unwrapped(out)
    )
    assert "% used" not in out
    _, out, _ = said(capsys, *argv, "--json")
    costs = [option["cost"] for option in json.loads(out)["options"]]
    assert costs and all(cost == {"minute_cost": None, "break_even_use": None} for cost in costs)


def test_a_host_with_gpus_for_several_pops(capsys: pytest.CaptureFixture[str]) -> None:
    """Its price is shared among them: 10 an hour for 2 PoPs of 19 calls."""
    argv = ("--model", "llama-3.2-1b", "--gpus", "H100:4", "--price", "10", "--hosted", "0.06")
    _, out, _ = said(capsys, *argv, "--calls", "4")
    assert "2 x 9: two PoPs on the host, of 9 calls each." in unwrapped(out)
    assert "bf16, one GPU        2 x 19    0.00439   0.00877    0.0175        7 % \n" in out
    assert "\nprice_per_hour = 5.0\n" in out
    assert (
        "- With pop.slots = 4, as --calls asks for, a minute of call costs at least 0.0208; with 19, which would be "
        "answered in time, 0.00439."
    ) in unwrapped(out)
    _, out, _ = said(capsys, *argv, "--calls", "19")
    assert "slots = 19  #" in out and "--calls asks for" not in unwrapped(out)


def test_how_many_hosts_and_what_they_cost(capsys: pytest.CaptureFixture[str]) -> None:
    """With a way out: what else would answer more."""
    argv = ("--model", "qwen3-8b", "--gpus", "H100", "--asr", "large-v3-turbo", *SHORT, "--calls", "36")
    _, out, _ = said(capsys, *argv, "--price", "2.5")
    assert "36 calls are too many for one such PoP (awq4, one GPU): it answers 5 within 300 ms" in unwrapped(out)
    assert "That would be 8 such hosts with 8 GPUs." in unwrapped(out)
    assert "- 8 such hosts, for 36 calls, cost 20.0 an hour." in unwrapped(out)
    assert "- Calls in time with one change from awq4, one GPU: Nemotron 16" in unwrapped(out)
    _, out, _ = said(capsys, *argv)
    assert "an hour" not in out, "nobody asked"


def test_never_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100", "--calls", "36")
    assert "KV cache 10.1 of " in out
    assert " never " in out and "never: with 36 calls more comes in than a stage can do" in out
    _, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100", "--calls", "8")
    assert "never" not in out


def test_what_answers_no_call_is_not_recommended(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "L4")
    assert status == 1
    assert "Not even one call is answered within 300 ms" in out and "[vllm]" not in out and "busy" not in out


def test_engines_that_stream_and_mps(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("--model", "llama-3.1-8b", "--gpus", "H100", "--calls", "32")
    _, out, _ = said(capsys, *argv, "--tts", "neutts", "--mps")
    assert "\nnemotron and neutts: " in out and "CUDA MPS runs." in out and "not scaled by GPU" not in out
    assert '\nasr = "nemotron"\nllm = "vllm"\ntts = "neutts"  # it needs a voice' in out
    assert "with every partial" not in out
    _, out, _ = said(capsys, *argv, "--asr", "large-v3-turbo", "--tts", "coqui")
    assert "\nwhisper large-v3-turbo and coqui: " in out and "with finals only" in out
    assert '\nasr = "whisper"  # [whisper] model: large-v3-turbo\nllm = "vllm"\ntts = "coqui"\n' in out


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


def test_hosts_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "--model", "llama-3.1-8b", "--gpus", "A10,H100,H100:2,L4")
    assert status == 0
    table, _, footnote = out.rpartition('\n\n"-" ')
    assert footnote == "means that it does not fit; in the column of fp8 also that the GPU does not compute in it.\n"
    head, line, *rows = table.splitlines()[2:]
    assert head == "| one host | bf16 | fp8 | awq4 | bound | calls with one change |" and set(line) <= set("|-: ")
    a10, h100, two, l4 = ([cell.strip() for cell in row.split("|")[1:-1]] for row in rows)
    assert a10[0] == "A10" and a10[2] == "-", "it computes in no fp8"
    assert h100[3].isdecimal() and int(two[3]) > int(h100[3]) and two[0] == "2 x H100"
    assert l4[1:4] == ["-", "0", "0"] and l4[4].endswith(": latency")
    assert all(len(row) < 120 for row in rows)


def test_a_host_that_answers_nobody_is_named_with_its_nearest_way(capsys: pytest.CaptureFixture[str]) -> None:
    """As `plan` for it alone does."""
    _, alone, _ = said(capsys, "--model", "qwen3-4b", "--gpus", "L4")
    assert "The nearest is awq4, one GPU" in unwrapped(alone)
    _, out, _ = said(capsys, "--model", "qwen3-4b", "--gpus", "L4,H100")
    assert "| L4 | 0 | 0 | 0 | awq4: latency | " in out


def test_what_a_dash_means_is_said_where_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "--model", "qwen3-0.6b", "--gpus", "H100,H200")
    assert "does not" not in out and out.endswith("|\n")


def test_a_checkpoint_in_fp8_on_gpus_that_do_not_compute_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    note = "A100-80 does not compute in fp8: such a checkpoint only saves memory there, and the time to read it."
    argv = ("--model", "Qwen/Qwen3-8B-FP8", "--gpus")
    assert f"- {note} " in unwrapped(said(capsys, *argv, "A100")[1])
    assert note in said(capsys, *argv, "A100,H100")[1], "also where hosts are compared"
    for gpus in ("H100", "H100,L4"):
        assert "does not compute" not in said(capsys, *argv, gpus)[1]
    assert "only saves memory" not in said(capsys, "--model", "qwen3-8b", "--gpus", "A100")[1], "fp8 is not proposed"


def test_costs_for_other_programs(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, *PRICED, "--hosted", "0.06", "--json")
    facts = json.loads(out)
    assert facts["cost"]["price_per_hour"] == 2.5 and facts["cost"]["hosted_per_minute"] == 0.06
    assert facts["cost"]["break_even_calls"] == pytest.approx(0.694, abs=0.001)
    assert facts["cost"]["break_even_minutes_a_day"] == pytest.approx(1000)
    one = facts["options"][0]
    calls = one["calls_in_time"] * one["pops_a_host"]
    assert one["cost"]["minute_cost"]["full"] == pytest.approx(2.5 / 60 / calls)
    assert one["cost"]["minute_cost"]["quarter"] == pytest.approx(4 * 2.5 / 60 / calls)
    assert one["cost"]["break_even_use"] == pytest.approx(facts["cost"]["break_even_calls"] / calls)
    assert "Break-even with a hosted API" in facts["advice"][-1]
    _, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100", "--json")
    assert json.loads(out)["cost"] is None


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
    """The table of D107: what `nemotron.gather_ms` and the ladder's rung do."""
    page = (ROOT / "voicepipe" / "sizing" / "README.md").read_text()
    group = Group(LLMS["llama-3.1-8b"], "bf16", GPUS["h100"], LINKS["nvlink"])
    for row, asr, traffic in (
        ("today (`ladder.short_phrase_ms = 80`)", Nemotron(), Traffic()),
        (
            "the recogniser's steps as soon as a chunk is due (`nemotron.gather_ms = 0`)",
            Nemotron(gather_ms=0),
            Traffic(),
        ),
        ("without the rung (`ladder.short_phrase_ms = 0`)", Nemotron(), Traffic(short_phrase_ms=0)),
        ('short first phrases from the start (`ladder.first_phrase = "short"`)', Nemotron(), Traffic().cut_short()),
    ):
        ways = [(voice(name), mps) for name in ("kokoro", "neutts") for mps in (False, True)]
        calls = [most_calls(SizedHost(group, 1, asr, tts, mps, traffic=traffic), 220)[0] for tts, mps in ways]
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


def test_what_a_turn_has_in_it_besides_compute(capsys: pytest.CaptureFixture[str]) -> None:
    """In what is printed and in D52."""
    _, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100")
    both = f"max({NOMINAL_MS:.0f}, {BEFORE_COMPUTE_MS:.0f} + compute)"
    begin, end = f"begin at {BEFORE_COMPUTE_MS:.0f}", f"the silence that ends a turn takes {NOMINAL_MS:.0f}"
    assert f"{both}: the engines {begin}, and {end}." in unwrapped(out)
    page = unwrapped((ROOT / "voicepipe" / "sizing" / "README.md").read_text())
    assert f"A turn takes {both} ms" in page and f"{end} ms with handing over" in page


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
