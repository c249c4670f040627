"""What the probability that the nano LLM gives to a turn's end is worth, by hand: `python tests/models/fit_ends.py`.

Fits READING_MIDDLE and READING_SLOPE of voicepipe/turn/endpoint.py on the development sentences of tests/turn, beside
what the rules say of the words; the held-out ones tell what it is good for. Needs torch, transformers and numpy.
"""

import json
import math
import random
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: E402

from tests.models.dialogues import AGENT, BOOK, TRANSFER, Call  # noqa: E402
from tests.models.nano import END, rendered  # noqa: E402
from voicepipe.conversation.prompt import Message  # noqa: E402
from voicepipe.turn.endpoint import EndpointConfig, Endpointer, Evidence  # noqa: E402

SENTENCES: dict[str, list[tuple[str, bool]]] = json.loads(
    (HERE.parent / "turn" / "endpoint_sentences.json").read_text()
)
ROUNDS = 50


def ends(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, text: str) -> float:
    """Probability that a caller's turn, the first of a call, ends after `text`."""
    said = [Message("system", AGENT["instructions"]), Message("assistant", AGENT["greeting"]), Message("user", text)]
    whole = rendered(tokenizer, Call(random.Random(0), (BOOK, TRANSFER)), said, answer=False)
    ids = tokenizer(whole.removesuffix(END), add_special_tokens=False, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        logits = model(ids).logits[0, -1]
    return float(logits.softmax(0)[tokenizer.convert_tokens_to_ids(END)])


def fitted(x: "np.ndarray", offset: "np.ndarray", y: "np.ndarray") -> tuple[float, float]:
    """(slope, middle) of y ~ offset + slope * (x - middle), by Newton's method on the logistic likelihood."""
    features = np.stack([x, np.ones_like(x)], axis=1)
    weights = np.zeros(2)
    for _ in range(ROUNDS):
        p = 1 / (1 + np.exp(-(offset + features @ weights)))
        hessian = (features * (p * (1 - p))[:, None]).T @ features + 0.1 * np.eye(2)
        weights += np.linalg.solve(hessian, features.T @ (y - p) - 0.1 * weights)
    return float(weights[0]), float(-weights[1] / weights[0])


def ranked(x: "np.ndarray", y: "np.ndarray") -> float:
    """Share of pairs of a whole sentence and a beginning that `x` puts in order (area under the ROC curve)."""
    above = x[y == 1][:, None] - x[y == 0][None]
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


def main() -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(HERE / "nano-llm")
    model = LlamaForCausalLM.from_pretrained(HERE / "nano-llm", dtype=torch.float32)
    judge = Endpointer(EndpointConfig())
    slope, middle = math.nan, math.nan
    for part, sentences in SENTENCES.items():
        x = np.array([math.log10(max(ends(model, tokenizer, text), 1e-9)) for text, _ in sentences])
        told = np.array([judge.probability(Evidence(text)) for text, _ in sentences])
        offset, y = np.log(told / (1 - told)), np.array([float(whole) for _, whole in sentences])
        if part == "development":
            slope, middle = fitted(x, offset, y)
        alone, beside = ranked(x, y), ranked(offset + slope * x, y)
        print(f"{part}: {len(y)} sentences, slope {slope:.2f}, middle {middle:.2f}")
        print(f"  in order: by the model {alone:.3f}, by the rules {ranked(offset, y):.3f}, by both {beside:.3f}")


if __name__ == "__main__":
    main()
