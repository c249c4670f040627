"""What the table of constants copies from configurations is as it is there."""

from voicepipe.config.engine_config import NemotronConfig, NeuttsConfig, WhisperConfig
from voicepipe.sizing import constants


def test_what_is_set_aside_is_what_the_engines_set_aside() -> None:
    assert constants.WHISPER_BATCH == WhisperConfig().batch
    assert constants.NEMOTRON_STREAMS == NemotronConfig().streams
    assert constants.NEUTTS_CACHE == NeuttsConfig().kv_cache_memory_bytes
