from tests.engines.contract import TtsContract
from voicepipe.config.engine_config import EspeakConfig
from voicepipe.engines.auto_voice import AutoTts


class TestAutoTts(TtsContract):
    @staticmethod
    def factory() -> AutoTts:
        return AutoTts(EspeakConfig())
