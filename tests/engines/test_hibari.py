from tests.engines.contract import TtsContract
from voicepipe.engines.hibari import HibariTts


class TestHibariTts(TtsContract):
    factory = HibariTts
