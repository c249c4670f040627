"""What a host must hold, and where recognition and synthesis are."""

from tests.sizing.hosts import host
from voicepipe.sizing.gpu_models import GIB
from voicepipe.sizing.turn import turn


def test_memory_of_one_card() -> None:
    one = host("qwen3-8b", "h100")
    assert one.shared and one.fits
    taken = one.llm_fixed + one.speech_fixed + one.kv_room
    assert taken == one.usable
    assert 20 < (one.llm_fixed + one.speech_fixed) / GIB < 24
    assert one.kv_needed(64) == 64 * 2048 * 144 * 1024
    assert one.kv_needed(1) == 8192 * 144 * 1024, "one context as long as max_model_len"
    assert not host("llama-3.1-70b", "h100").fits


def test_recognition_and_synthesis_get_the_card_after_the_group() -> None:
    two = host("qwen3-8b", "h100", 2)
    assert not two.shared
    assert two.kv_room == host("qwen3-8b", "h100").kv_room + two.speech_fixed
    assert host("qwen3-8b", "h100", 2, tensor=2).shared
    at_8 = {gpus: turn(host("qwen3-8b", "h100", gpus), 8).compute for gpus in (1, 2)}
    assert at_8[2] < at_8[1]
