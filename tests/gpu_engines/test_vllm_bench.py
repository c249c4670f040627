"""`voicepipe bench engines --shape` by the real vLLM: a whole run ends with every figure."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from voicepipe.bench.results import ASR_FINAL, CLOCK, COMPUTE, LLM_FIRST, NAMES, TTS_FIRST

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[2]
POP = f"""
[pop]
agents = "{ROOT / "configs" / "agents"}"
[engines]
asr = "scripted"
llm = "frontdesk"
tts = "espeak"
"""


def test_a_language_model_of_a_shape(tmp_path: Path) -> None:
    """vLLM's engine has a process of its own, as on a GPU, though it costs a CPU more."""
    file, config = tmp_path / "figures.json", tmp_path / "pop.toml"
    config.write_text(POP)
    options = ["--config", str(config), "--shape", "tiny", "--calls", "2", "--seconds", "5", "--rounds", "1"]
    line = [sys.executable, "-m", "voicepipe", "bench", "engines", *options, "--table", "--json", str(file)]
    environment = os.environ | {"VLLM_ENABLE_V1_MULTIPROCESSING": "1"}
    printed = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert printed.returncode == 0, printed.stderr
    assert "| turn compute |" in printed.stdout and "| LLM, first token |" in printed.stdout
    told = json.loads(file.read_text())["figures"]
    assert told["engines"] == {"llm": "vLLM: tiny, random weights", "asr": "scripted", "tts": "espeak"}
    assert any("EngineCor" in name for name in told["processes"])
    assert [(result["calls"], result["idle_gaps"]) for result in told["results"]] == [(2, True), (2, False)]
    for result in told["results"]:
        assert result["turns"] > 0
        assert {ASR_FINAL, LLM_FIRST, TTS_FIRST, COMPUTE, CLOCK} <= set(result["together"]) <= {*NAMES}
        assert {LLM_FIRST, TTS_FIRST, CLOCK} <= set(result["alone"])
