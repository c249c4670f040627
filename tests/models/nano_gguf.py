"""Writes the nano LLM as one file in llama.cpp's format: `python -m tests.models.nano_gguf FILE`. Needs the package
gguf, and no torch."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

NANO = Path(__file__).parent / "nano-llm"
NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}  # fmt: skip
"""Parts of a layer, by their names in transformers and in llama.cpp."""


def write(file: Path, folder: Path = NANO) -> None:
    """Write the Llama in `folder`, with its tokenizer and its chat template, in float32."""
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    _add_tokenizer(writer, folder)
    for name, weights in _tensors(folder, config):
        writer.add_tensor(name, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: "gguf.GGUFWriter", folder: Path) -> None:
    made = json.loads((folder / "tokenizer.json").read_text())
    tokens = {number: token for token, number in made["model"]["vocab"].items()}
    types = dict.fromkeys(tokens, gguf.TokenType.NORMAL)
    for added in made["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")  # As ours: each digit is a token, bytes are letters.
    writer.add_token_list([tokens[number] for number in sorted(tokens)])
    writer.add_token_types([types[number] for number in sorted(tokens)])
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in made["model"]["merges"]])
    ids = {token: number for number, token in tokens.items()}
    writer.add_eos_token_id(ids["<|end|>"])
    writer.add_pad_token_id(ids["<|pad|>"])
    writer.add_add_bos_token(False)
    writer.add_chat_template((folder / "chat_template.jinja").read_text())


def _tensors(folder: Path, config: dict[str, int]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    whole = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for name, weights in load_file(folder / "model.safetensors").items():
        part = name.removesuffix(".weight")
        weights = weights.astype(np.float32)
        if part in whole:
            yield f"{whole[part]}.weight", weights
            continue
        _, _, layer, inner = part.split(".", 3)
        kind = NAMES[inner]
        if kind in heads:  # llama.cpp turns neighbours, transformers the two halves of a head.
            halves = weights.reshape(heads[kind], 2, -1, weights.shape[1])
            weights = np.ascontiguousarray(halves.swapaxes(1, 2).reshape(weights.shape))
        yield f"blk.{layer}.{kind}.weight", weights


if __name__ == "__main__":
    write(Path(sys.argv[1]))
