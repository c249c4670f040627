"""A tiny VITS with random weights, in the real architecture: .venv-coqui/bin/python tests/models/make_vits.py FOLDER

It reads letters, has two speakers and hums. It takes the same time for a text each time and is loud enough to be heard,
which random weights alone would not give.
"""

import math
import sys
from pathlib import Path

import torch
from TTS.tts.configs.vits_config import VitsArgs, VitsConfig
from TTS.tts.models.vits import Vits


def make(folder: Path) -> None:
    """Writes config.json and model.pth."""
    torch.manual_seed(1)
    args = VitsArgs(
        hidden_channels=32,
        hidden_channels_ffn_text_encoder=64,
        num_layers_text_encoder=2,
        num_layers_posterior_encoder=2,
        num_layers_flow=2,
        upsample_initial_channel_decoder=64,
        use_sdp=False,
        init_discriminator=False,
        use_speaker_embedding=True,
        speaker_embedding_channels=16,
    )
    config = VitsConfig(
        model_args=args, speakers=["anna", "ben"], use_speaker_embedding=True, text_cleaner="basic_cleaners"
    )
    model = Vits(config)
    with torch.no_grad():
        model.duration_predictor.proj.weight.zero_()
        model.duration_predictor.proj.bias.fill_(math.log(1.4))
        last = model.waveform_decoder.conv_post.weight  # [1, channels, samples]
        last.sub_(last.mean(dim=2, keepdim=True)).mul_(20)  # a hum, not a constant
    model.eval()
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_json(folder / "config.json")
    torch.save({"model": model.state_dict()}, folder / "model.pth")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
