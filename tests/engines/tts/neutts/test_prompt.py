"""What NeuTTS-Air reads, and when a phrase has gone on for long enough."""

from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.engines.tts.neutts import prompt
from voicepipe.engines.tts.neutts.prompt import PromptWriter, Recording, longest, recording

CODES = 8
VOICE = Recording("hˈaɪ", (3, 1, 2), 3.0, 2)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    signs = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({sign: at for at, sign in enumerate(signs)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    marks = (prompt.TEXT_BEGINS, prompt.TEXT_ENDS, prompt.SPEECH_BEGINS, prompt.SPEECH_ENDS)
    made.add_special_tokens([AddedToken(name) for name in (*marks, *(f"<|speech_{code}|>" for code in range(CODES)))])
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_the_recording_stands_before_the_text_and_its_codes_before_the_speech(model: Path) -> None:
    written = PromptWriter(model, CODES).written(VOICE, "jˈɛs.")
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    asked = (
        "user: Convert the text to speech:<|TEXT_PROMPT_START|>hˈaɪ jˈɛs.<|TEXT_PROMPT_END|>\n"
        "assistant:<|SPEECH_GENERATION_START|><|speech_3|><|speech_1|><|speech_2|>"
    )
    assert written == tokenizer.encode(asked, add_special_tokens=False).ids


def test_what_is_no_code_of_speech_is_left_out(model: Path) -> None:
    writer = PromptWriter(model, CODES)
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokens = tokenizer.encode("<|speech_7|>oh<|speech_0|>", add_special_tokens=False).ids
    assert writer.codes([*tokens, writer.ends]) == [7, 0]


def test_a_model_of_another_kind_is_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"it has no token <\|speech_8\|>"):
        PromptWriter(model, CODES + 1)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(EngineMissing, match="has no tokenizer.json"):
        PromptWriter(tmp_path, CODES)


def test_a_recording_tells_its_pace() -> None:
    assert recording("twenty letters, here", "x", range(100)).letter_codes == 5
    assert recording("one", "x", range(1000)).letter_codes == 8, "what cannot be is not believed"
    assert recording("x" * 1000, "x", range(100)).letter_codes == 2


def test_a_phrase_ends_by_its_letters_however_the_model_goes_on() -> None:
    assert longest("x" * 100, VOICE, 2000) == 2 * 300 + 75
    assert longest("x" * 100, VOICE, 400) == 400
    assert longest("", VOICE, 400) == 75
    with pytest.raises(EngineError, match="no room is left"):
        longest("x" * 100, VOICE, 9)


def test_a_text_is_spoken_in_pieces_that_the_context_holds(model: Path) -> None:
    """The recording stands in it as well; one that leaves no room is refused at the start."""
    writer = PromptWriter(model, CODES)
    long = recording("x" * 100, "y" * 200, [1] * 400)
    begun = len(writer.written(long, ""))
    assert writer.letters_at_a_time("key", long, begun + 700) == 100
    assert writer.letters_at_a_time("key", long, begun + 7000) == 150
    with pytest.raises(EngineError, match="neutts.voices.anna: the recording leaves 70 of neutts.max_model_len"):
        writer.letters_at_a_time("neutts.voices.anna", long, begun + 70)
