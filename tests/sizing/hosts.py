"""Hosts, and the ways to put a model on them."""

from voicepipe.sizing.gpu_models import GPUS, LINKS
from voicepipe.sizing.host import SizedHost
from voicepipe.sizing.language import ParallelGroup
from voicepipe.sizing.options import Option, evaluated, options
from voicepipe.sizing.recognition import recogniser
from voicepipe.sizing.shapes import LLMS
from voicepipe.sizing.traffic import FirstPhrase, Traffic
from voicepipe.sizing.voices import voice

TURBO, KOKORO = recogniser("large-v3-turbo"), voice("kokoro")

COMPUTE_MS = 220

BRIEF = Traffic(phrase=FirstPhrase(8, 1.2), short_phrase_ms=0)
"""Of first phrases so short that Whisper and Kokoro answer some calls: there is something to choose from."""


def host(model: str, gpu: str, gpus: int = 1, dtype: str = "bf16", tensor: int = 1, **more: object) -> SizedHost:
    speech = {"asr": TURBO, "tts": KOKORO, "traffic": BRIEF}
    return SizedHost(ParallelGroup(LLMS[model], dtype, GPUS[gpu], LINKS["nvlink"], tensor), gpus, **speech | more)  # type: ignore[arg-type]


def found(
    model: str, gpu: str, gpus: int, calls: int, by: str = "nvlink", compute_ms: float = COMPUTE_MS
) -> list[Option]:
    dtypes = ["bf16", *(["fp8"] if GPUS[gpu].fp8_tflops else []), "awq4"]
    one = host(model, gpu, gpus).with_group(link=LINKS[by])
    return [evaluated(way, calls, compute_ms) for way in options(one, dtypes)]
