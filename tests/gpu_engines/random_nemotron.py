"""A Nemotron checkpoint of the real class, as transformers stores it, with random weights: nothing is fetched.

It says random syllables, which depend on what it hears, and about as many as are spoken.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models
from transformers.models.nemotron3_5_asr.configuration_nemotron3_5_asr import Nemotron3_5AsrConfig
from transformers.models.nemotron3_5_asr.modeling_nemotron3_5_asr import Nemotron3_5AsrForRNNT
from transformers.models.nemotron_asr_streaming.configuration_nemotron_asr_streaming import (
    NemotronAsrStreamingConfig,
    NemotronAsrStreamingEncoderConfig,
)
from transformers.models.nemotron_asr_streaming.modeling_nemotron_asr_streaming import NemotronAsrStreamingForRNNT
from transformers.utils.logging import disable_progress_bar

from voicepipe.engines.asr.nemotron import front_end, greedy

BANDS = 128
TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
        "subsampling_conv_channels": 16}  # fmt: skip
HEARD, SPOKEN, HALVINGS = 64, 0.5, 12
"""Frames of noise of which as many tokens are made: half of them, found by so many tries."""
SYLLABLES = [f"{first}{vowel}" for first in "bdfgklmnprstvz" for vowel in "aeiou"]


def make_nemotron(folder: Path, *, tiny: bool = True, many_languages: bool = False, seed: int = 0) -> Path:
    """Write model.safetensors, config.json and tokenizer.json into `folder`. Not `tiny`: the true shape, 2.4 GB."""
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
    disable_progress_bar()  # it would stand above a bench's table
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
    noise = _noise()
    heard = model.get_audio_features(input_features=noise, num_lookahead_tokens=1).pooler_output[0]
    louder = 1.0 / heard.std(0).mean()
    model.encoder_projector.weight.mul_(louder)
    model.encoder_projector.bias.copy_(louder * (model.encoder_projector.bias - heard.mean(0)))
    frames = louder * (heard - heard.mean(0))
    low, high = 0.0, 50.0
    for _ in range(HALVINGS):
        bias = (low + high) / 2
        model.joint.head.bias[model.config.blank_token_id] = bias
        low, high = (bias, high) if _said(model, frames) > SPOKEN * HEARD else (low, bias)


def _noise() -> torch.Tensor:
    """What is heard of noise that comes and goes: [1, mel frames, BANDS]."""
    count = 8 * HEARD - 7
    sound = (
        0.1
        * torch.randn(front_end.samples(count))
        * torch.rand(count).repeat_interleave(200)[: front_end.samples(count)]
    )
    at, shape, filters = front_end.positions(count), front_end.window(), front_end.mel_filters(BANDS)
    return torch.from_numpy(front_end.log_mel(np, sound.numpy(), at, shape, filters).astype(np.float32))[None]


def _said(model: Any, frames: torch.Tensor) -> int:
    """Tokens in them."""
    at, start = torch.zeros(1, dtype=torch.long), greedy.initial_state(model)
    decoder_state = greedy.DecoderState(*start, at, at.clone(), at == 0)
    rounds = HEARD * (model.config.max_symbols_per_step + 1)
    return int((greedy.search(model, frames[None], decoder_state, rounds, lazy=True)[1] != greedy.NO_TOKEN).sum())


def _tokenizer(vocabulary: int) -> Tokenizer:
    pieces = [("" if number % 3 == 2 else "▁") + SYLLABLES[number % len(SYLLABLES)] for number in range(70)]
    pieces += [f"▁{SYLLABLES[n % 70]}{SYLLABLES[n // 70]}" for n in range(max(0, vocabulary - 71))]
    ids = {piece: number for number, piece in enumerate(pieces[: vocabulary - 1])} | {"<blank>": vocabulary - 1}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=[]))
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens([AddedToken("<blank>", special=True)])
    return tokenizer
