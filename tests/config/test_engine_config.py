"""Tables that concern engines."""

import json
from typing import Any, Literal

import pytest

from tests.config.told import problem
from voicepipe import config
from voicepipe.config.engine_config import NemotronConfig, VllmConfig

RECORDED = """[engines]
tts = "neutts"
[neutts.voices.anna]
file = "anna.wav"
text = "What she says in it."
"""


def test_a_recorded_voice_needs_a_line_that_says_who_consented(write: Any) -> None:
    for consent in ("", 'consent = " "\n'):
        said = problem(write(RECORDED + consent))
        assert said.startswith("neutts.voices.anna.consent: write who consented to the use of this voice, and when")
    found = config.load(write(RECORDED + 'consent = "Anna Example, 3 May 2026"\n'))
    assert found.neutts.voices["anna"].file == str(write("").parent / "anna.wav")


def test_a_recorded_voice_that_lacks_something_is_told(write: Any) -> None:
    consent = 'consent = "Anna Example, 3 May 2026"\n'
    assert "a voice needs a recording" in problem(write(RECORDED.replace('"anna.wav"', '""') + consent))
    said = problem(write('[neutts]\nvoice = "ann"\n' + RECORDED + consent))
    assert "neutts.voice: there is no [neutts.voices.ann]; there are: anna" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("chunk_ms = 160\ngather_ms = 81", "gather_ms: cannot be 81; at most 80, half of chunk_ms (160)"),
        ("chunk_ms = 320", "chunk_ms: cannot be 320 with nvidia/nemotron-speech-streaming-en-0.6b"),
        ("detect_language = true", "detect_language: nvidia/nemotron-speech-streaming-en-0.6b hears English alone"),
    ],
)
def test_what_a_streaming_recogniser_cannot_be_told(write: Any, text: str, said: str) -> None:
    assert problem(write(f"[nemotron]\n{text}")).startswith(f"nemotron.{said}")
    polyglot = f'[nemotron]\nmodel = "nvidia/nemotron-3.5-asr-streaming-0.6b"\n{text}'
    assert "gather" in said or config.load(write(polyglot))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"pipeline_parallel_size": "2"}, "args.pipeline_parallel_size: cannot be '2'; give a whole number from 1 on"),
        ({"nnodes": 0}, "args.nnodes: cannot be 0; give a whole number from 1 on"),
        ({"nnodes": 2, "pipeline_parallel_size": 2}, "args.master_addr: is missing; give this host's address"),
        ({"nnodes": 2, "master_addr": "10.0.0.1", "node_rank": 1}, "args.node_rank: leave it out; the PoP's host is"),
        ({"nnodes": 2, "master_addr": "10.0.0.1"}, "args.nnodes: 1 processes"),
        ({"nnodes": 2, "distributed_executor_backend": "ray"}, "args.nnodes: leave it out; Ray finds its hosts"),
    ],
)
def test_how_a_model_cannot_be_divided(write: Any, args: dict[str, Any], said: str) -> None:
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in args.items())
    assert problem(write(f"[vllm.args]\n{lines}")).startswith(f"vllm.{said}")


@pytest.mark.parametrize(
    ("dtype", "device", "expected"),
    [
        ("auto", "cpu", "float32"),
        ("auto", "cuda:1", "bfloat16"),
        ("float32", "cuda:1", "float32"),
        ("bfloat16", "cpu", "bfloat16"),
    ],
)
def test_what_a_device_computes_with(dtype: Literal["auto", "float32", "bfloat16"], device: str, expected: str) -> None:
    assert NemotronConfig(dtype=dtype).dtype_on(device) == expected


def test_what_a_request_cannot_do_without_is_not_left_out(write: Any) -> None:
    assert config.load(write('[openai]\nomit = ["tool_choice"]')).openai.omit == ("tool_choice",)
    assert problem(write('[openai]\nomit = ["messages"]')).startswith(
        "openai.omit: cannot have 'messages'; allowed: temperature, max_tokens, max_completion_tokens, tool_choice"
    )


def test_the_revision_of_a_model_is_one_of_vllm_s_own_arguments() -> None:
    assert VllmConfig().revision == ""
    assert VllmConfig(args={"revision": "v2"}).revision == "v2"
