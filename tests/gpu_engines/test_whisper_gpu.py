"""`whisper` on a GPU, in float16: what it does on a CPU, and in batches."""

from pathlib import Path

import ctranslate2
import pytest

from latency_probes.components.random_whisper import make_whisper
from tests.engines.contract import AsrContract, tone
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.asr.whisper import WhisperAsr
from voicepipe.engines.asr.whisper_model import LoadedWhisper, Passage
from voicepipe.engines.base import Asr

pytestmark = [
    pytest.mark.engine,
    pytest.mark.gpu,
    pytest.mark.skipif(not ctranslate2.get_cuda_device_count(), reason="no GPU"),
]


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_whisper(tmp_path_factory.mktemp("whisper"), multilingual=True)


class TestWhisperAsrOnGpu(AsrContract):
    folder: Path

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def model(cls, folder: Path) -> None:
        cls.folder = folder

    @classmethod
    def factory(cls) -> Asr:
        return WhisperAsr(WhisperConfig(model=str(cls.folder), device="cuda:0"))


def test_a_batch_is_read_as_its_utterances_are_alone(folder: Path) -> None:
    model = LoadedWhisper(WhisperConfig(model=str(folder), batch=4))
    model.warm()
    assert model.batch == 4
    passages = [Passage(tone(seconds), timed=seconds > 2) for seconds in (0.3, 1.0, 2.5, 14.0)]
    together = model.read(passages)
    assert [reading.words for reading in together] == [model.read([passage])[0].words for passage in passages]
    assert "".join(word.text for word in together[0].words) == " What are your opening hours?"
    full_stops = [reading.full_stop for reading in together]
    assert full_stops == pytest.approx([1.0] * len(passages), abs=1e-3), "the mark that it writes ends a sentence"
