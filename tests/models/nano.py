"""The nano LLM's tokenizer, its chat template, and how well it answers. Needs torch and transformers."""

import random
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from latency_probes.transcripts import matches
from tests.models.callers import PROBES, UTTERANCES
from tests.models.dialogues import AGENT, BOOK, INTENTS, TRANSFER, Call, call
from voicepipe.conversation.prompt import Message, Prompt
from voicepipe.engines.llm import chat

VOCABULARY = 2048
PAD, END, SYSTEM, USER, ASSISTANT, TOOL = "<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"
CALL, CALL_ENDS = "<tool_call>", "</tool_call>"
TEMPLATE = (Path(__file__).parent / "nano_chat.jinja").read_text()
CALLERS_WEIGHT = 0.2
LONGEST_REPLY = 90
AT_A_TIME = 32
SHOWN = 12
QUESTIONS = {*INTENTS} - {"booking", "repeat"}


def rendered(tokenizer: PreTrainedTokenizerFast, made: Call, messages: list[Message], *, answer: bool = True) -> str:
    """What the model reads before it answers; not `answer`: a whole call."""
    prompt = Prompt(tuple(messages), made.tools)
    text: str = tokenizer.apply_chat_template(
        chat.messages(prompt), tools=chat.tools(prompt), tokenize=False, add_generation_prompt=answer
    )
    return text


def make_tokenizer(calls: Iterable[Call]) -> PreTrainedTokenizerFast:
    """Byte-level BPE: every text can be encoded. Digits are tokens of their own, so that they can be copied."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made.decoder = decoders.ByteLevel()
    specials = [PAD, END, SYSTEM, USER, ASSISTANT, TOOL]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 2,
        special_tokens=specials,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bare = PreTrainedTokenizerFast(tokenizer_object=made, chat_template=TEMPLATE)
    split = re.compile(r"<\|\w+\|>")
    made.train_from_iterator(
        (part for one in calls for part in split.split(rendered(bare, one, one.messages, answer=False))), trainer
    )
    # Not special: what reads tool calls has to see them.
    made.add_tokens([AddedToken(CALL, normalized=False), AddedToken(CALL_ENDS, normalized=False)])
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=specials[2:],
        chat_template=TEMPLATE,
        model_max_length=8192,
        clean_up_tokenization_spaces=False,
    )


def ids_and_weights(tokenizer: PreTrainedTokenizerFast, made: Call) -> tuple[list[int], list[float]]:
    """A call's tokens, and how much each counts: what the desk says, a little what callers say, nothing else.

    Of callers it is to learn where their sentences end, which is what `VllmLlm.ends` asks.
    """
    ids: list[int] = tokenizer(rendered(tokenizer, made, made.messages, answer=False), add_special_tokens=False)[
        "input_ids"
    ]
    user, desk, ends = tokenizer.convert_tokens_to_ids([USER, ASSISTANT, END])
    begins = {user: CALLERS_WEIGHT, desk: 1.0}
    weights, weight = [], 0.0
    for token in ids:
        weights.append(weight)
        weight = begins.get(token, 0.0 if token == ends else weight)
    return ids, weights


def questions(made: Call) -> Iterator[tuple[str, list[Message], str]]:
    """(what it is, the conversation so far, the right reply as the model would write it)."""
    asked = iter(made.asked)
    what = ""
    for at, message in enumerate(made.messages):
        if message.role == "user":
            what = next(asked)
        elif message.role == "assistant" and any(earlier.role == "user" for earlier in made.messages[:at]):
            arguments = (
                message.call
                and f'{CALL}\n{{"name": "{message.call.name}", "arguments": {message.call.arguments}}}\n{CALL_ENDS}'
            )
            yield what, made.messages[:at], message.text + (arguments or "")


def replies(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, prompts: Sequence[str]) -> list[str]:
    """Greedy, to prompts as the template writes them."""
    tokens = [tokenizer(prompt, add_special_tokens=False)["input_ids"] for prompt in prompts]
    order = sorted(range(len(prompts)), key=lambda index: len(tokens[index]))
    said: dict[int, str] = {}
    for at in range(0, len(order), AT_A_TIME):
        some = order[at : at + AT_A_TIME]
        inputs = tokenizer.pad(
            {"input_ids": [tokens[index] for index in some]}, padding_side="left", return_tensors="pt"
        )
        with torch.inference_mode():
            made = model.generate(**inputs, max_new_tokens=LONGEST_REPLY, do_sample=False)
        for index, ids in zip(some, made[:, inputs["input_ids"].shape[1] :], strict=True):
            said[index] = tokenizer.decode(ids, skip_special_tokens=True)
    return [said[index] for index in range(len(prompts))]


def evaluate(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, calls: int = 80) -> str:
    """How many replies are right to the letter, in calls whose sentences were never trained on; some wrong ones."""
    lines = [_of_probes(model, tokenizer)]
    for name, noise in (("well heard", (0.0,)), ("a quarter of the words misheard", (0.25,))):
        made = [call(20_000_000 + seed, turns=5, held_out=True, noise=noise) for seed in range(calls)]
        asked = [
            (what, rendered(tokenizer, one, before), right) for one in made for what, before, right in questions(one)
        ]
        got = replies(model, tokenizer, [prompt for _, prompt, _ in asked])
        for kind, of_kind in (
            ("questions", QUESTIONS),
            ("bookings", {"booking"}),
            ("the rest", {"add", "unclear", "repeat"}),
        ):
            told = [(*one, said) for one, said in zip(asked, got, strict=True) if one[0] in of_kind]
            wrong = [(prompt, said) for _, prompt, right, said in told if said != right]
            lines.append(f"{name}, {kind}: {len(told) - len(wrong)} of {len(told)} ({1 - len(wrong) / len(told):.1%})")
            lines += [
                f"  {prompt.rpartition(USER)[2].partition(END)[0]!r} -> {said!r}" for prompt, said in wrong[:SHOWN]
            ]
    return "\n".join(lines)


def _of_probes(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> str:
    """The sentences that latency_probes says, and what it takes for an answer."""
    expected = tomllib.loads((UTTERANCES / "intents.toml").read_text())
    greeting = [Message("system", AGENT["instructions"]), Message("assistant", AGENT["greeting"])]
    one = Call(random.Random(0), (BOOK, TRANSFER))
    got = replies(model, tokenizer, [rendered(tokenizer, one, [*greeting, Message("user", text)]) for text in PROBES])
    wrong = [
        f"  {text!r} -> {said!r}"
        for (text, intent), said in zip(PROBES.items(), got, strict=True)
        if not matches(said, expected[intent]["expect"])
    ]
    return "\n".join([f"the probes' sentences: {len(PROBES) - len(wrong)} of {len(PROBES)}", *wrong])
