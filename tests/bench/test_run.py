"""`voicepipe bench engines`: it loads, measures and prints."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

from voicepipe.base.figures import cpu
from voicepipe.bench import results, run
from voicepipe.commands.cli import main
from voicepipe.engines.hosting import gpus


@pytest.mark.engine
@pytest.mark.parametrize(
    ("asr", "llm", "tts", "gaps"),
    [("whisper", "frontdesk", "espeak", "both"), ("scripted", "scripted", "scripted", "none")],
)
def test_the_engines_of_a_configuration(asr: str, llm: str, tts: str, gaps: str, tmp_path: Path) -> None:
    file, config = tmp_path / "figures.json", tmp_path / "pop.toml"
    agents = Path(__file__).parents[2] / "configs" / "agents"
    config.write_text(f'[pop]\nagents = "{agents}"\n[engines]\nasr = "{asr}"\nllm = "{llm}"\ntts = "{tts}"\n')
    options = ["--config", str(config), "--calls", "2", "--seconds", "4", "--rounds", "1", "--gaps", gaps]
    line = [sys.executable, "-m", "voicepipe", "bench", "engines", *options, "--table", "--json", str(file)]
    printed = subprocess.run(line, capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    told = json.loads(file.read_text())["figures"]
    assert told["engines"] == {"asr": asr, "llm": f"{llm}{': the embedded engine' * (llm == 'frontdesk')}", "tts": tts}
    kinds = [True, False] if gaps == "both" else [False]
    assert [(each["calls"], each["idle_gaps"]) for each in told["results"]] == [(2, kind) for kind in kinds]
    for each in told["results"]:
        assert each["turns"] >= 1
        assert {results.ASR_FINAL, results.LLM_FIRST, results.TTS_FIRST, results.LATENCY} <= set(each["together"])
        assert each["together"][results.CLOCK]["count"] > 50


def test_a_driver_that_nobody_can_ask_does_not_end_a_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the engines were loaded, it did."""
    monkeypatch.setattr(gpus, "DRIVER", tmp_path)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert run._device() == cpu()
    assert "not asked" in run._versions()["driver"]


@pytest.mark.engine
def test_models_that_are_not_here_are_fetched_by_a_command_that_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    config, agents = tmp_path / "pop.toml", Path(__file__).parents[2] / "configs" / "agents"
    config.write_text(f'[pop]\nagents = "{agents}"\n[engines]\nasr = "whisper"\n[whisper]\nmodel = "org/none"\n')
    assert main(["bench", "engines", "--config", str(config)]) == 2
    assert f"fetch it with `voicepipe models pull {config}`" in capsys.readouterr().err


def test_a_run_of_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "engines", "--seconds", "0.5"]) == 2
    assert "--seconds 0.5: a run takes 1 second or more" in capsys.readouterr().err
