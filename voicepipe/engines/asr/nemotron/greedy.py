"""The words of frames: greedy search of a transducer, for many calls at once. Blocking.

Not transformers' `generate`, whose batch begins and ends together. Each row has a frame of its own at which it stands:
it says a token and stays, or says blank and goes on. So many rounds as the row with most tokens needs, and no more.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

NO_TOKEN = -1
"""Stands for a round in which a row says no token."""


class DecoderState(NamedTuple):
    """The state of the greedy search for B rows. Rows that are done do not change any more."""

    prediction: Tensor
    """[B, size]: what the prediction network makes of the tokens so far."""
    hidden: Tensor
    """[layers, B, size]"""
    cell: Tensor
    """[layers, B, size]"""
    frame: Tensor
    """int64[B]: the frame at which each row stands; beyond the last frame: it is done."""
    count: Tensor
    """int64[B]: tokens that each row said at its frame."""
    finite: Tensor
    """bool[B]: whether all scores were numbers."""


def initial_state(model: Any) -> tuple[Tensor, Tensor, Tensor]:
    """`prediction`, `hidden` and `cell` of one row that has said nothing yet."""
    config, like = model.config, {"dtype": model.dtype, "device": model.device}
    nothing = torch.zeros(config.num_decoder_layers, 1, config.decoder_hidden_size, **like)
    blank = torch.full((1,), config.blank_token_id, device=model.device)
    return _predicted(model.decoder, blank, nothing, nothing)


def search(model: Any, frames: Tensor, state: DecoderState, rounds: int, *, lazy: bool) -> tuple[DecoderState, Tensor]:
    """The state after `rounds` rounds, and what the rows said: int64[B, rounds], NO_TOKEN where it was none.

    `frames`: [B, n, size] of the encoder. `lazy`: what need not be computed is left out, for which the host waits for
    the device.
    """
    prediction, hidden, cell, frame, count, finite = state
    config, last = model.config, frames.shape[1] - 1
    tokens = []
    for _ in range(rounds):
        going = frame <= last
        here = frames.gather(1, frame.clamp(max=last)[:, None, None].expand(-1, 1, frames.shape[2]))[:, 0]
        scores = model.joint(prediction, here)
        finite = finite & (torch.isfinite(scores).all(-1) | ~going)
        token = scores.argmax(-1)
        speaks = going & (token != config.blank_token_id)
        tokens.append(torch.where(speaks, token, NO_TOKEN))
        if not lazy or speaks.any():
            new = _predicted(model.decoder, token, hidden, cell)
            prediction = torch.where(speaks[:, None], new[0], prediction)
            hidden = torch.where(speaks[:, None], new[1], hidden)
            cell = torch.where(speaks[:, None], new[2], cell)
        count = count + speaks.long()
        on = going & (~speaks | (count >= config.max_symbols_per_step))
        frame = frame + on.long()
        count = torch.where(on, 0, count)
    return DecoderState(prediction, hidden, cell, frame, count, finite), torch.stack(tokens, 1)


def _predicted(decoder: Any, token: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The output of the prediction network for one more token, and its state. It uses the class's weights layer by
    layer, since cuDNN's LSTM waits for the host."""
    x, hiddens, cells = decoder.embedding(token), [], []
    for layer in range(hidden.shape[0]):
        names = (f"{name}_l{layer}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        weights = [getattr(decoder.lstm, name) for name in names]
        x, state = torch.lstm_cell(x, (hidden[layer], cell[layer]), *weights)
        hiddens.append(x)
        cells.append(state)
    return decoder.decoder_projector(x), torch.stack(hiddens), torch.stack(cells)
