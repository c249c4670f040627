"""Trains the nano LLM that tests talk to, by hand: `python tests/models/train_nano.py`, some minutes on two cores.

A Llama of 3 million parameters with a tokenizer of its own, taught nothing but calls to a restaurant's front desk
(dialogues.py). Needs torch, transformers and msgspec. What it writes, tests/models/nano-llm, is committed.
"""

import argparse
import math
import os
import random
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: E402

from tests.models.dialogues import call  # noqa: E402
from tests.models.nano import evaluate, ids_and_weights, make_tokenizer  # noqa: E402

SEED = 5
STEPS = 1100
BATCH_TOKENS = 5000
POOL = 128
"""Calls that are made at a time."""
TOKENIZER_CALLS = 3000
PEAK_MUON, PEAK_ADAM = 0.02, 0.003


def model_of(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Everything that tensor parallelism divides is even: heads, KV heads, the MLP, the vocabulary."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=8192,
        rope_theta=10_000.0,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config)


def batches(tokenizer: PreTrainedTokenizerFast) -> Iterator[tuple[Tensor, Tensor]]:
    """(int64 ids, float weights)[calls, tokens], for ever. No call comes twice; like lengths are together."""
    for first in count(step=POOL):
        pool = [ids_and_weights(tokenizer, call(seed)) for seed in range(first, first + POOL)]
        pool.sort(key=lambda pair: len(pair[0]), reverse=True)
        made = []
        while pool:
            together = max(1, BATCH_TOKENS // len(pool[0][0]))
            made.append(padded(pool[:together], tokenizer.pad_token_id))
            pool = pool[together:]
        random.Random(first).shuffle(made)
        yield from made


def padded(pairs: list[tuple[list[int], list[float]]], pad: int) -> tuple[Tensor, Tensor]:
    width = max(len(ids) for ids, _ in pairs)
    return (
        torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in pairs]),
        torch.tensor([weights + [0.0] * (width - len(weights)) for _, weights in pairs]),
    )


def loss_of(model: LlamaForCausalLM, ids: Tensor, weights: Tensor) -> Tensor:
    """Of what is said and nothing else. Padding is on the right, where causal attention never looks."""
    hidden = model.model(ids, use_cache=False).last_hidden_state[:, :-1]
    told = weights[:, 1:] > 0
    each = cross_entropy(model.lm_head(hidden[told]).float(), ids[:, 1:][told], reduction="none")
    return (each * weights[:, 1:][told]).sum() / weights.sum()


def optimizers(model: LlamaForCausalLM) -> list[tuple[torch.optim.Optimizer, float]]:
    """Muon (Jordan 2024) for the matrices between the layers, which needs fewer steps; AdamW for the rest."""
    matrices = [weight for name, weight in model.named_parameters() if weight.ndim == 2 and "embed" not in name]
    others = [weight for name, weight in model.named_parameters() if weight.ndim < 2 or "embed" in name]
    return [
        (torch.optim.Muon(matrices, lr=PEAK_MUON, weight_decay=0.01, momentum=0.95), PEAK_MUON),
        (torch.optim.AdamW(others, lr=PEAK_ADAM, betas=(0.9, 0.98), weight_decay=0.0), PEAK_ADAM),
    ]


def share_of_peak(step: int, steps: int) -> float:
    """Warm-up, a plateau, a fall to nothing over the last half."""
    return min(1.0, (step + 1) / 20, max(0.0, 2 * (steps - step) / steps))


def train(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, steps: int) -> None:
    steppers = optimizers(model)
    begun, smooth = time.monotonic(), math.nan
    for step, (ids, weights) in zip(range(steps), batches(tokenizer), strict=False):
        for optimizer, peak in steppers:
            for group in optimizer.param_groups:
                group["lr"] = peak * share_of_peak(step, steps)
        loss = loss_of(model, ids, weights)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, _ in steppers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        smooth = loss.item() if math.isnan(smooth) else 0.95 * smooth + 0.05 * loss.item()
        if step % 10 == 0 or step == steps - 1:
            print(f"step {step:4} of {steps}  loss {smooth:.3f}  {time.monotonic() - begun:5.0f} s", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=STEPS)
    options.add_argument("--out", type=Path, default=HERE / "nano-llm")
    options.add_argument("--threads", type=int, default=2)
    chosen = options.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(chosen.threads)
    tokenizer = make_tokenizer(call(10_000_000 + seed) for seed in range(TOKENIZER_CALLS))
    model = model_of(tokenizer)
    print(f"{model.num_parameters() / 1e6:.2f} million parameters, {len(tokenizer)} tokens", flush=True)
    train(model, tokenizer, chosen.steps)
    model.eval()
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.half().save_pretrained(chosen.out)
    tokenizer.save_pretrained(chosen.out)
    print(evaluate(LlamaForCausalLM.from_pretrained(chosen.out, dtype=torch.float32), tokenizer))


if __name__ == "__main__":
    main()
