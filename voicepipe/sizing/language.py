"""The language model under calls: how many replies it writes at a time, and what a turn then waits for."""

import math
from dataclasses import dataclass

from voicepipe.sizing.speed import REQUEST_MS, STEP_MS, Group, decode_ms, prefill_ms
from voicepipe.sizing.stage import Met, Work
from voicepipe.sizing.traffic import Phrase, Traffic

MOST_SEQUENCES = 32
"""`vllm.args.max_num_seqs` as our configurations set it: those sizes of a batch have a CUDA graph each with
`performance_mode = "interactivity"`. In our own process vLLM's default is 128 sequences and 2048 tokens a step
(vllm/config/scheduler.py, 0.32); its server's is 256 and more."""


@dataclass(frozen=True, slots=True)
class Language:
    first_token: float
    token: float
    """From one token to the next, with `replies` others at a time."""
    prefill: Work
    """Of the first token."""
    step: Work
    """Of each token after it."""
    replies: float
    """At a time, in the mean."""
    met: Met
    """The step that is under way when a prompt comes; it is in `first_token`."""
    on_gpu: float
    """Share of the time in which it has work on the GPU."""

    @property
    def full(self) -> bool:
        """More replies come at a time than it takes, or do one time in twenty."""
        return self.replies + 2 * math.sqrt(self.replies) > MOST_SEQUENCES

    def whole(self, phrase: Phrase) -> float:
        """From the request until a first phrase is whole."""
        return math.inf if self.full else self.first_token + (phrase.tokens - 1) * self.token

    def gpu(self, phrase: Phrase) -> float:
        """The GPU's part of that, while nobody else is at it."""
        return self.prefill.gpu + (phrase.tokens - 1) * self.step.gpu


def language(group: Group, traffic: Traffic, calls: int, slow: float) -> Language:
    """`slow`: by what its work takes longer beside others on the GPU."""
    tokens = traffic.reply_tokens + (traffic.silences - 1) * traffic.phrase.tokens
    replies = at_a_time(group, calls * tokens / traffic.turn_s / 1000, traffic.context_tokens, slow)
    others = round(replies)
    step = decode_step(group, 1 + others, traffic.context_tokens)
    prefill = prefill_step(group, traffic.new_tokens, traffic.context_tokens, 1 + others)
    token = step.lasts(slow)
    met = Met(present(replies), token)
    return Language(
        first_token=REQUEST_MS + prefill.lasts(slow) + met.wait,
        token=token,
        prefill=prefill,
        step=step,
        replies=replies,
        met=met,
        on_gpu=present(replies) * slow * step.gpu / token,
    )


def decode_step(group: Group, batch: int, context: int) -> Work:
    """From one token to the next. The GPU has nothing to do while it is scheduled."""
    return Work(STEP_MS, decode_ms(group, batch, context) - STEP_MS)


def prefill_step(group: Group, new: int, context: int, sequences: int) -> Work:
    """As `prefill_ms` takes."""
    return Work(STEP_MS, prefill_ms(group, new, context, sequences) - STEP_MS)


def at_a_time(group: Group, tokens: float, context: int, slow: float) -> float:
    """Sequences that are being generated at a time, in the mean, where so many tokens a millisecond are wanted: the
    more there are the longer each takes. `MOST_SEQUENCES`: they come faster than they end."""
    running = before = 0.0
    for _ in range(200):
        step = decode_step(group, max(1, math.ceil(running)), context).lasts(slow)
        before, running = running, min(MOST_SEQUENCES, tokens * step)
        if running - before < 0.01:  # it only grows, from none
            break
    return running


def present(running: float) -> float:
    """Share of the time in which at least one is, if they come by chance."""
    return 1 - math.exp(-running)
