"""A chunk of sound of each of many calls -> frames of the encoder. Blocking.

The layers are transformers' own. Not so the encoder's `forward`, which takes all streams for equally old: here each row
has its age, and sees no keys from before its beginning. The first chunk is as long as the others (`front_end.py`): what
it has too much is zeroed before each convolution, which is what the convolutions find there in a recording.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from voicepipe.engines.asr.nemotron import front_end
from voicepipe.engines.asr.nemotron.front_end import FACTOR
from voicepipe.engines.asr.nemotron.states import SlotAccess

LOUDEST = 32768.0
"""The sample that is 1.0 to the front end."""


class NemotronEncoder:
    """The encoder of a Nemotron model, changed to take chunks of `frames` frames for a batch of calls whose states are
    in slots."""

    def __init__(self, model: Any, frames: int) -> None:
        self._model, self._frames = model, frames
        device, bands = model.device, model.config.encoder_config.num_mel_bins
        self._at = torch.from_numpy(front_end.positions(frames * FACTOR)).to(device)
        self._shape = torch.from_numpy(front_end.window()).to(device)
        self._filters = torch.from_numpy(front_end.mel_filters(bands)).to(device)
        self.left = (model.config.encoder_config.sliding_window - 1) // frames * frames
        """Frames that attention sees before a chunk: whole chunks, as the model was trained."""
        self._precompute()

    def mel(self, sound: Tensor) -> Tensor:
        """int16[B, n] -> [B, frames * FACTOR, bands]"""
        heard: Tensor = front_end.log_mel(torch, sound.float() / LOUDEST, self._at, self._shape, self._filters)
        return heard.to(self._model.dtype)

    def frames(self, sound: Tensor, access: SlotAccess, prompt: Tensor) -> Tensor:
        """int16[B, n] -> [B, frames, size], as the joint network wants them. `prompt`: int64[B], the languages."""
        encoder = self._model.encoder
        x = self._subsampled(self.mel(sound), access) * encoder.input_scale
        mask = access.attention_mask(self._frames)
        for layer in encoder.layers:
            caches = {"past_key_values": access.keys, "padding_cache": access.paddings}
            x = layer(x, attention_mask=mask, position_embeddings=x, **caches)
        access.advance(self._frames)
        if hasattr(self._model, "prompt_projector"):
            asked = F.one_hot(prompt, self._model.config.num_prompts).to(x.dtype)
            x = self._model.prompt_projector(torch.cat([x, asked[:, None].expand(-1, x.shape[1], -1)], -1))
        projected: Tensor = self._model.encoder_projector(x)
        return projected

    def _subsampled(self, mel: Tensor, access: SlotAccess) -> Tensor:
        subsampling, begins = self._model.encoder.subsampling, (access.age == 0)[:, None, None, None]
        ahead, x = FACTOR - 1, _zeroed_lead(mel[:, None], begins, FACTOR - 1)
        for stage in (subsampling.conv_in, *subsampling.layers):
            if stage is subsampling.conv_in:
                x = stage(x, padding_cache=access.paddings)
            else:
                x, _ = stage(x, None, padding_cache=access.paddings)
            ahead //= 2
            x = _zeroed_lead(subsampling.act_fn(x), begins, ahead)
        x = x.transpose(1, 2)
        embedded: Tensor = subsampling.linear(x.reshape(*x.shape[:2], -1))
        return embedded

    def _precompute(self) -> None:
        """What the layers make of distances alone is made once, and convolutions of width 1 are matrix products, which
        need not be looked for among cuDNN's kernels. The results are the same."""
        encoder, config = self._model.encoder, self._model.config.encoder_config
        positions = encoder.encode_positions
        # In 32 bits, whatever the weights are in: 16 are too few for a wave's length.
        positions.inv_freq = positions.compute_default_relative_positional_parameters(config).to(self._model.device)
        like = torch.zeros(1, self._frames, config.hidden_size, dtype=self._model.dtype, device=self._model.device)
        distances = positions(like, cached_frames=self.left)
        for layer in encoder.layers:
            keys = layer.self_attn.relative_k_proj(distances)
            layer.self_attn.relative_k_proj.forward = lambda x, keys=keys: keys.expand(x.shape[0], -1, -1)
            for conv in (layer.conv.pointwise_conv1, layer.conv.pointwise_conv2):
                conv.forward = lambda x, conv=conv: F.linear(
                    x.transpose(1, 2), conv.weight.squeeze(-1), conv.bias
                ).transpose(1, 2)


def _zeroed_lead(x: Tensor, begins: Tensor, ahead: int) -> Tensor:
    """[B, channels, time, bands], of rows that begin without what is ahead of the sound."""
    if not ahead:
        return x
    return torch.cat([x[:, :, :ahead].masked_fill(begins, 0.0), x[:, :, ahead:]], 2)
