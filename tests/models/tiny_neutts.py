"""A NeuTTS-Air of the real classes with random weights: what it says is noise, and it never ends by itself. Needs torch
and transformers."""

import math
import wave
from pathlib import Path

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import NeuCodecConfig, NeuCodecModel, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from voicepipe.engines.tts.neutts.prompt import SPEECH_BEGINS, SPEECH_ENDS, TEXT_BEGINS, TEXT_ENDS

LEVELS = (4, 4, 4)
CODES = math.prod(LEVELS)
VOCABULARY = 384
SAID = "This is what she says in it, word for word, and she says it so quickly that nobody could follow her, ever."
"""Of the recording, so that its pace is a fast one."""
SURE = 8.0
"""How much likelier codes of speech are than anything else."""


def make(folder: Path) -> tuple[Path, Path, Path]:
    """(the language model, the codec, a recording of 4 s), below `folder`."""
    model, codec, recording = folder / "neutts-air", folder / "neucodec", folder / "anna.wav"
    tokenizer = make_tokenizer()
    tokenizer.save_pretrained(str(model))
    make_model(tokenizer).save_pretrained(str(model))
    make_codec().save_pretrained(str(codec))
    noise = np.random.default_rng(3).normal(size=4 * 22_050) * 3000
    with wave.open(str(recording), "wb") as file:
        file.setparams((1, 2, 22_050, 0, "NONE", ""))
        file.writeframes(noise.astype("<i2").tobytes())
    return model, codec, recording


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A token for each byte, the marks, and the codes."""
    made = Tokenizer(models.BPE({sign: at for at, sign in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    marks = [TEXT_BEGINS, TEXT_ENDS, SPEECH_BEGINS, SPEECH_ENDS, "<|end|>"]
    made.add_special_tokens([AddedToken(name) for name in (*marks, *(f"<|speech_{code}|>" for code in range(CODES)))])
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>")


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    """One dimension of its state is the same for every token; by it the head prefers codes to everything else."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=VOCABULARY, hidden_size=128, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=4096, tie_word_embeddings=False,
        eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    model = Qwen2ForCausalLM(config)
    codes = tokenizer.convert_tokens_to_ids([f"<|speech_{code}|>" for code in range(CODES)])
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = 1.0
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight[0] = 0
            layer.mlp.down_proj.weight[0] = 0
        model.lm_head.weight[:, 0] = -SURE
        model.lm_head.weight[codes, 0] = SURE
    return model


def make_codec() -> NeuCodecModel:
    """Weights of the size that keeps a signal's: transformers' own are so small that all codes would sound the same."""
    torch.manual_seed(0)
    semantic = {"model_type": "wav2vec2-bert", "hidden_size": 32, "output_hidden_size": 32, "num_hidden_layers": 1,
                "num_attention_heads": 2, "intermediate_size": 32, "conv_depthwise_kernel_size": 3}  # fmt: skip
    config = NeuCodecConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        head_dim=16, encoder_hidden_size=4, semantic_model_config=semantic, quantization_dim=64,
        quantization_levels=list(LEVELS),
    )  # fmt: skip
    codec = NeuCodecModel(config).eval()
    with torch.no_grad():
        for weights in codec.parameters():
            if weights.ndim > 1:
                weights.normal_(std=weights[0].numel() ** -0.5)
    return codec
