"""A Nemotron streaming checkpoint of the real class, as transformers stores it, with random weights: nothing is fetched.

It says random syllables, which depend on what it hears, and about as many as are spoken.
"""

from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models
from transformers.models.nemotron3_5_asr.configuration_nemotron3_5_asr import Nemotron3_5AsrConfig
from transformers.models.nemotron3_5_asr.modeling_nemotron3_5_asr import Nemotron3_5AsrForRNNT
from transformers.models.nemotron_asr_streaming.configuration_nemotron_asr_streaming import (
    NemotronAsrStreamingConfig,
    NemotronAsrStreamingEncoderConfig,
)
from transformers.models.nemotron_asr_streaming.modeling_nemotron_asr_streaming import NemotronAsrStreamingForRNNT

BANDS = 128
TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
        "subsampling_conv_channels": 16}  # fmt: skip
SPOKEN = 0.3
"""Frames of noise in which something is said."""
SYLLABLES = [f"{first}{vowel}" for first in "bdfgklmnprstvz" for vowel in "aeiou"]


def make_nemotron(folder: Path, *, tiny: bool = True, many_languages: bool = False, seed: int = 0) -> Path:
    """Write model.safetensors, config.json and tokenizer.json into `folder`. Not `tiny`: the published shape, 2.4 GB."""
    torch.manual_seed(seed)
    encoder = NemotronAsrStreamingEncoderConfig(num_mel_bins=BANDS, **(TINY if tiny else {}))
    vocabulary = 65 if tiny else 1025
    own: dict[str, Any] = {"vocab_size": vocabulary, "blank_token_id": vocabulary - 1, "encoder_config": encoder}
    own |= {"decoder_hidden_size": 32, "max_symbols_per_step": 3} if tiny else {}
    model: Any = (
        Nemotron3_5AsrForRNNT(Nemotron3_5AsrConfig(**own, prompt_intermediate_size=96 if tiny else 2048))
        if many_languages
        else NemotronAsrStreamingForRNNT(NemotronAsrStreamingConfig(**own))
    )
    with torch.no_grad():
        _enliven(model.eval())
    model.save_pretrained(folder)
    _tokenizer(vocabulary).save(str(folder / "tokenizer.json"))
    return folder


def _enliven(model: Any) -> None:
    """Random layers hardly tell sounds apart: what the encoder says is made louder. Then blank is made as likely as it
    is in speech."""
    model.joint.head.weight.normal_(std=0.3)
    model.decoder.embedding.weight.normal_()
    for name, weights in model.decoder.lstm.named_parameters():
        weights.normal_(std=0.3 if name.startswith("weight") else 0.1)
    noise = torch.randn(1, 8 * 40 + 1, BANDS) * 3 - 6
    asked = {"num_lookahead_tokens": 1}
    heard = model.get_audio_features(input_features=noise, **asked).pooler_output[0]
    model.encoder_projector.weight.mul_(1.0 / heard.std(0).mean())
    model.encoder_projector.bias.zero_()
    heard = model.get_audio_features(input_features=noise, **asked).pooler_output[0]
    blank = model.config.blank_token_id
    said = model.decoder(torch.full((1, 1), blank))[0]
    scores = model.joint(said, heard - heard.mean(0))
    model.encoder_projector.bias.sub_(heard.mean(0))
    scores[:, blank] = 0.0
    model.joint.head.weight[blank] = 0.0
    model.joint.head.bias[blank] = scores.max(-1).values.quantile(1 - SPOKEN)


def _tokenizer(vocabulary: int) -> Tokenizer:
    pieces = [("" if number % 3 == 2 else "▁") + SYLLABLES[number % len(SYLLABLES)] for number in range(70)]
    pieces += [f"▁{SYLLABLES[n % 70]}{SYLLABLES[n // 70]}" for n in range(max(0, vocabulary - 71))]
    ids = {piece: number for number, piece in enumerate(pieces[: vocabulary - 1])} | {"<blank>": vocabulary - 1}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=[]))
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens([AddedToken("<blank>", special=True)])
    return tokenizer
