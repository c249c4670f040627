"""The recogniser: transformers' own class of Nemotron Speech Streaming 0.6B with random weights.

Its published shape is its configuration's defaults with 128 mel bands: 24 layers of 1024.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.models.nemotron_asr_streaming.configuration_nemotron_asr_streaming import (
    NemotronAsrStreamingConfig,
    NemotronAsrStreamingEncoderConfig,
)
from transformers.models.nemotron_asr_streaming.modeling_nemotron_asr_streaming import NemotronAsrStreamingForRNNT

from voicepipe.bench.engines.standins.device import Device

LOOKAHEAD = 1
"""Frames of 80 ms behind the present one: chunks are of 160 ms."""
FRAMES = LOOKAHEAD + 1
MELS = 128
TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
        "subsampling_conv_channels": 16}  # fmt: skip


def build(device: Device, tiny: bool, seed: int = 0) -> Any:
    """On the device, in bfloat16 (on a CPU in float32)."""
    encoder = NemotronAsrStreamingEncoderConfig(num_mel_bins=MELS, **(TINY if tiny else {}))
    config = NemotronAsrStreamingConfig(encoder_config=encoder, **({"decoder_hidden_size": 32} if tiny else {}))
    model = device.make(lambda: NemotronAsrStreamingForRNNT(config), device.bf16, seed)
    positions = model.encoder.encode_positions  # its numbers are no weights, and were lost with the meta device
    positions.inv_freq = positions.compute_default_relative_positional_parameters(encoder).to(device.torch)
    return model


def left(model: Any) -> int:
    """Frames that attention sees before the chunk."""
    return int(model.config.encoder_config.sliding_window) - 1


def positions(model: Any, x: Tensor) -> Tensor:
    """The embeddings of distances [B, keys + keys - 1, dim] for chunks x [B, FRAMES, dim]."""
    embedded: Tensor = model.encoder.encode_positions(x, cached_frames=left(model))
    return embedded


def tune(model: Any) -> None:
    """The same results with less work: what is made of distances alone is made once, and convolutions of width 1 are
    matrix products, which need not be looked for among cuDNN's kernels."""
    config = model.config.encoder_config
    like = torch.zeros(1, FRAMES, config.hidden_size, dtype=model.dtype, device=model.device)
    with torch.no_grad():
        distances = positions(model, like)
        for layer in model.encoder.layers:
            keys = layer.self_attn.relative_k_proj(distances)
            layer.self_attn.relative_k_proj.forward = lambda x, keys=keys: keys.expand(x.shape[0], -1, -1)
            for conv in (layer.conv.pointwise_conv1, layer.conv.pointwise_conv2):
                conv.forward = lambda x, conv=conv: F.linear(
                    x.transpose(1, 2), conv.weight.squeeze(-1), conv.bias
                ).transpose(1, 2)
