"""What `voicepipe plan` prints: tables, sentences, and a configuration."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.commands.planning import said, unwrapped
from tests.support.paths import ROOT
from voicepipe.commands import cli
from voicepipe.sizing.prediction import BEFORE_COMPUTE_MS, NOMINAL_MS


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert cli.main(["plan", *argv]) == 0
    out = capsys.readouterr().out
    return out[out.index("[engines]") : out.index("All of it is predicted")]


def read(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    return tomllib.loads(printed(capsys, *argv))


def test_it_is_a_configuration(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for model, gpus in (("qwen3-8b", "H100"), ("llama-3.1-70b", "H100:4"), ("llama-3.1-8b", "RTX-5090")):
        file = tmp_path / "my.toml"
        file.write_text(printed(capsys, "--model", model, "--gpus", gpus))
        assert cli.main(["check", str(file)]) == 0
        capsys.readouterr()


def test_a_model_that_must_be_had_in_awq_is_left_to_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--model", "qwen3-8b", "--gpus", "H100", "--calls", "15")
    assert 'model = ""  # a checkpoint of Qwen/Qwen3-8B in AWQ, 4 bits\n' in text, "its own name would load 16 bits"


@pytest.mark.parametrize(("model", "gpu", "calls"), [("qwen3-8b", "H100", 100), ("Qwen/Qwen3-4B-AWQ", "RTX-4090", 50)])
def test_the_cache_is_for_the_slots_that_are_printed(
    capsys: pytest.CaptureFixture[str], model: str, gpu: str, calls: int
) -> None:
    """Not for the calls that were asked for, where the host answers fewer."""
    argv = ("--model", model, "--gpus", gpu, "--calls")
    many = read(capsys, *argv, str(calls))
    slots, cache = many["pop"]["slots"], many["vllm"]["kv_cache_memory_bytes"]
    call = 2048 * 144 * 1024
    assert slots < calls and slots * call <= cache < (1.2 * slots + 1) * call
    assert read(capsys, *argv, str(slots))["vllm"]["kv_cache_memory_bytes"] == cache
    one = read(capsys, *argv, "1")["vllm"]
    assert one["kv_cache_memory_bytes"] >= one["max_model_len"] * 144 * 1024, "room for one context"


def test_agents_can_use_tools(capsys: pytest.CaptureFixture[str]) -> None:
    for model, parser in (("Qwen/Qwen3-8B", "hermes"), ("llama-3.2-3b", "llama3_json")):
        assert read(capsys, "--model", model, "--gpus", "H100")["vllm"]["tool_call_parser"] == parser
    text = printed(capsys, "--model", "gemma-3-4b", "--gpus", "H100")
    assert 'tool_call_parser = ""  # "hermes", "llama3_json", ...; empty: agents cannot use tools\n' in text


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_a_narrow_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100")
    table = [line for line in out.splitlines() if line.startswith(("bf16, one GPU", "fp8, one GPU", "awq4, one GPU"))]
    assert len(table) == 3 and all(line.split()[-1] in {"recognition", "synthesis", "language"} for line in table)


def test_never_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100", "--calls", "36")
    assert "KV cache 10.1 of " in out
    assert " never " in out and "never: with 36 calls more comes in than a stage can do" in out
    _, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100", "--calls", "8")
    assert "never" not in out


def test_engines_that_stream_and_mps(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("--model", "llama-3.1-8b", "--gpus", "H100", "--calls", "32")
    _, out, _ = said(capsys, *argv, "--tts", "neutts", "--mps")
    assert "\nnemotron and neutts: " in out and "CUDA MPS runs." in out and "not scaled by GPU" not in out
    assert '\nasr = "nemotron"\nllm = "vllm"\ntts = "neutts"  # it needs a voice' in out
    assert "with every partial" not in out
    _, out, _ = said(capsys, *argv, "--asr", "large-v3-turbo", "--tts", "coqui")
    assert "\nwhisper large-v3-turbo and coqui: " in out and "with finals only" in out
    assert '\nasr = "whisper"  # [whisper] model: large-v3-turbo\nllm = "vllm"\ntts = "coqui"\n' in out


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


def test_what_a_turn_has_in_it_besides_compute(capsys: pytest.CaptureFixture[str]) -> None:
    """In what is printed and in `sizing/README.md`."""
    _, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100")
    both = f"max({NOMINAL_MS:.0f}, {BEFORE_COMPUTE_MS:.0f} + compute)"
    begin, end = f"begin at {BEFORE_COMPUTE_MS:.0f}", f"the silence that ends a turn takes {NOMINAL_MS:.0f}"
    assert f"{both}: the engines {begin}, and {end}." in unwrapped(out)
    page = unwrapped((ROOT / "voicepipe" / "sizing" / "README.md").read_text())
    assert f"A turn takes {both} ms" in page and f"{end} ms with handing over" in page
