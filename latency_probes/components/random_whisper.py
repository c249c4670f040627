"""A Whisper checkpoint of the real architecture as CTranslate2 stores it, with random weights: nothing is fetched.

Only the positions of its decoder are not random: they spell the words that are wanted, whatever the sound. So all that
is around the model is tested, and nothing that it would have learnt.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ctranslate2.specs import WhisperSpec
from faster_whisper.tokenizer import _LANGUAGE_CODES
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

SAYS = "we would like to book a table for two at seven tonight"
LANGUAGES = tuple(code for code in _LANGUAGE_CODES if code != "yue")
TASKS = ("translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps")
TIMESTAMPS = 1501
MULTILINGUAL = ""
"""By this token CTranslate2 tells the models that know more than English."""


@dataclass(frozen=True)
class Shape:
    """Whisper's own sizes: tiny is 384, 6, 4, 4; base 512, 8, 6, 6; large-v3-turbo 1280, 20, 32, 4 with 128 bands."""

    width: int = 64
    heads: int = 2
    encoder_layers: int = 2
    decoder_layers: int = 2
    bands: int = 80
    vocabulary: int = 0
    """At least; Whisper's is 51,866, which the time of a token depends on."""


def make_whisper(
    folder: Path, says: str = "What are your opening hours?", *, multilingual: bool = False, language: str = "en",
    shape: Shape = Shape(),
) -> Path:  # fmt: skip
    """Write model.bin, config.json, vocabulary.json, tokenizer.json and preprocessor_config.json into `folder`.

    `says`: the words of every utterance; `language`: that of every utterance, if it is `multilingual`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pieces = says.replace("?", " ?").replace(".", " .").replace(",", " ,").split()
    words = [piece if piece in "?.," else f"Ġ{piece}" for piece in pieces]
    text = list(dict.fromkeys([*sorted(pre_tokenizers.ByteLevel.alphabet()), *words]))
    special = [f"<|{name}|>" for name in ("endoftext", "startoftranscript", *LANGUAGES, *TASKS)]
    stamps = [f"<|{0.02 * i:.2f}|>" for i in range(TIMESTAMPS)]
    if multilingual:
        text.append(MULTILINGUAL)
    filler = [f"Ġfiller{i}" for i in range(shape.vocabulary - len(text) - len(special) - len(stamps))]
    vocabulary = [*text, *filler, *special, *stamps]
    ids = {token: i for i, token in enumerate(vocabulary)}

    prompt = 4 if multilingual else 2
    spoken = [f"<|{language}|>"] + ["<|endoftext|>"] * 447
    spoken[prompt - 1 : prompt - 1 + len(words)] = words
    spec = _spec(shape, len(vocabulary), [ids[token] for token in spoken])
    spec.register_vocabulary(vocabulary)
    spec.config.suppress_ids = []
    spec.config.suppress_ids_begin = [ids["<|endoftext|>"]]
    spec.config.lang_ids = [ids[f"<|{code}|>"] for code in LANGUAGES]
    spec.config.alignment_heads = [(shape.decoder_layers - 1, head) for head in range(shape.heads)]
    spec.validate()
    spec.save(str(folder))
    _tokenizer(ids, [*special, *stamps]).save(str(folder / "tokenizer.json"))
    features = {
        "feature_size": shape.bands,
        "sampling_rate": 16000,
        "hop_length": 160,
        "chunk_length": 30,
        "n_fft": 400,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(features))
    return folder


def _tokenizer(ids: dict[str, int], special: Sequence[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    return tokenizer


def _spec(shape: Shape, vocabulary: int, spoken: Sequence[int]) -> Any:
    random = np.random.default_rng(0)

    def weights(*size: int) -> NDArray[np.float32]:
        return random.normal(0, 0.02, size).astype(np.float32)

    def linear(spec: Any, out: int, into: int) -> None:
        spec.weight, spec.bias = weights(out, into), np.zeros(out, np.float32)

    def norm(spec: Any, gain: float = 1.0) -> None:
        spec.gamma, spec.beta = np.full(width, gain, np.float32), np.zeros(width, np.float32)

    def attention(spec: Any) -> None:
        norm(spec.layer_norm)
        # To itself: queries, keys and values in one; to the sound: queries, then keys and values.
        for part, outs in zip(spec.linear, (3, 1) if len(spec.linear) == 2 else (1, 2, 1), strict=True):
            linear(part, outs * width, width)

    def layer(spec: Any) -> None:
        attention(spec.self_attention)
        if hasattr(spec, "attention"):
            attention(spec.attention)
        norm(spec.ffn.layer_norm)
        linear(spec.ffn.linear_0, 4 * width, width)
        linear(spec.ffn.linear_1, width, 4 * width)

    width = shape.width
    spec = WhisperSpec(shape.encoder_layers, shape.heads, shape.decoder_layers, shape.heads)
    encoder, decoder = spec.encoder, spec.decoder
    encoder.conv1.weight, encoder.conv1.bias = weights(width, shape.bands, 3), np.zeros(width, np.float32)
    encoder.conv2.weight, encoder.conv2.bias = weights(width, width, 3), np.zeros(width, np.float32)
    encoder.position_encodings.encodings = weights(1500, width)
    norm(encoder.layer_norm)
    embeddings = random.normal(0, width**-0.5, (vocabulary, width)).astype(np.float32)
    decoder.embeddings.weight = decoder.projection.weight = embeddings
    decoder.position_encodings.encodings = 20 * embeddings[list(spoken)]
    norm(decoder.layer_norm, gain=4.0)
    for each in (*encoder.layer, *decoder.layer):
        layer(each)
    return spec
