"""One pocketsphinx decoder, blocking, behind four methods. All of the C library's names are in this file.

The Python binding holds the GIL while it decodes, so the C library inside its wheel is called through ctypes, which
lets go of it: threads then decode side by side, beside the event loop. See include/pocketsphinx.h of pocketsphinx 5.1.
"""

import ctypes
import functools
import importlib.util
import itertools
import math
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from voicepipe.audio import Pcm
from voicepipe.errors import EngineError, EngineMissing

LOG10_OF_BASE = math.log10(1.0001)
"""pocketsphinx counts log-probabilities to this base."""
PHRASES_WEIGHT = 0.3
"""Share of the agent's own phrases in the language model; between 0.3 and 0.8 the error rate hardly moves."""
PHRASES_COUNT = 3
"""The agent's phrases count so many times as much as the sentences that everybody says."""

POINTER, TEXT, NUMBER, SIZE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "err_set_loglevel_str": (NUMBER, TEXT),
    "ps_config_init": (POINTER, POINTER),
    "ps_config_free": (NUMBER, POINTER),
    "ps_config_set_str": (POINTER, POINTER, TEXT, TEXT),
    "ps_config_set_bool": (POINTER, POINTER, TEXT, NUMBER),
    "ps_config_set_int": (POINTER, POINTER, TEXT, ctypes.c_long),
    "ps_init": (POINTER, POINTER),
    "ps_free": (NUMBER, POINTER),
    "ps_start_utt": (NUMBER, POINTER),
    "ps_process_raw": (NUMBER, POINTER, POINTER, SIZE, NUMBER, NUMBER),
    "ps_end_utt": (NUMBER, POINTER),
    "ps_get_hyp": (TEXT, POINTER, POINTER),
    "ps_get_lm": (POINTER, POINTER, TEXT),
    "ps_get_logmath": (POINTER, POINTER),
    "ps_add_lm": (NUMBER, POINTER, TEXT, POINTER),
    "ps_activate_search": (NUMBER, POINTER, TEXT),
    "ngram_model_read": (POINTER, POINTER, TEXT, NUMBER, POINTER),
    "ngram_model_set_init": (POINTER, POINTER, POINTER, POINTER, POINTER, ctypes.c_int32),
    "ngram_model_set_interp": (POINTER, POINTER, POINTER, POINTER),
    "ngram_prob": (ctypes.c_int32, POINTER, POINTER, ctypes.c_int32),
}
"""Result, then arguments."""


@functools.cache
def _library() -> tuple[ctypes.CDLL, Path]:
    """The C library and the folder of the English model. Raises EngineMissing."""
    try:
        spec = importlib.util.find_spec("pocketsphinx._pocketsphinx")
        if spec is None or spec.origin is None:
            raise ImportError
        library = ctypes.CDLL(spec.origin)
        for name, (result, *arguments) in FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (ImportError, OSError) as error:
        raise EngineMissing("pocketsphinx is not installed: pip install pocketsphinx") from error
    except AttributeError as error:
        raise EngineMissing(
            f"This build of pocketsphinx hides its C functions ({error}): install its wheel."
        ) from error
    library.err_set_loglevel_str(b"FATAL")
    return library, Path(spec.origin).parent / "model" / "en-us"


class Decoder:
    """One utterance at a time, and one thread at a time. About 95 MB; loads in 0.3 s."""

    def __init__(self, phrases: Sequence[str] = ()) -> None:
        """`phrases`: sentences that callers are likely to say. Raises EngineMissing, EngineError."""
        self._c, model = _library()
        config = self._c.ps_config_init(None)
        for key, path in (("hmm", "en-us"), ("dict", "cmudict-en-us.dict"), ("lm", "en-us.lm.bin")):
            self._c.ps_config_set_str(config, key.encode(), str(model / path).encode())
        # A second pass over the utterance at its end takes 130 ms; the best path through the lattice takes 15.
        self._c.ps_config_set_bool(config, b"fwdflat", 0)
        self._decoder = self._c.ps_init(config)
        if not self._decoder:
            raise EngineError(f"pocketsphinx cannot load its model in {model}: install the wheel again.")
        self._lm = self._c.ps_get_lm(self._decoder, None)
        self._adapt(config, [*ordinary(), *phrases_for_lm(phrases)])

    def start(self) -> None:
        """Begin an utterance."""
        self._check(self._c.ps_start_utt(self._decoder))

    def feed(self, pcm: Pcm) -> None:
        """Decode int16[n] at 16 kHz; takes about a tenth of its duration."""
        self._check(self._c.ps_process_raw(self._decoder, pcm.ctypes.data, pcm.size, 0, 0))

    def end(self) -> None:
        """Search the whole utterance for its best words."""
        self._check(self._c.ps_end_utt(self._decoder))

    def words(self) -> str:
        """Before `end`: a guess that costs nothing. After: the words."""
        found: bytes | None = self._c.ps_get_hyp(self._decoder, None)
        return found.decode() if found else ""

    def end_logprob(self, text: str) -> float | None:
        """log10 probability that a sentence ends after `text`; None without words."""
        if not text:
            return None
        words = ["<s>", *text.split()][-2:]
        context = [b"</s>", *(word.encode() for word in reversed(words))]
        logprob: int = self._c.ngram_prob(self._lm, (TEXT * len(context))(*context), len(context))
        return logprob * LOG10_OF_BASE

    def free(self) -> None:
        """Give the memory back; the decoder must not be used again."""
        self._c.ps_free(self._decoder)
        self._decoder = None

    def _adapt(self, config: int, sentences: Sequence[str]) -> None:
        """Interpolate the model's language model with one made of `sentences`."""
        with tempfile.NamedTemporaryFile("w", suffix=".lm") as file:
            file.write(arpa(sentences))
            file.flush()
            own = self._c.ngram_model_read(config, file.name.encode(), 0, self._c.ps_get_logmath(self._decoder))
        if not own:
            raise EngineError("pocketsphinx cannot read the language model made of the agent's phrases.")
        models, names = (POINTER * 2)(self._lm, own), (TEXT * 2)(b"english", b"own")
        weights = (ctypes.c_float * 2)(1 - PHRASES_WEIGHT, PHRASES_WEIGHT)
        mixed = self._c.ngram_model_set_init(config, models, names, weights, 2)
        self._c.ngram_model_set_interp(mixed, names, weights)
        self._check(self._c.ps_add_lm(self._decoder, b"mixed", mixed))
        self._check(self._c.ps_activate_search(self._decoder, b"mixed"))
        self._lm = mixed

    def _check(self, result: int) -> None:
        if result < 0:
            raise EngineError("pocketsphinx failed; its log says why at log level ERROR.")


# --- a small language model -------------------------------------------------------------------------------------


def phrases_for_lm(phrases: Iterable[str]) -> list[str]:
    """Phrases as the recogniser writes words: lower case, no punctuation; repeated to count for more."""
    plain = [" ".join(re.findall(r"[a-z']+", phrase.lower())) for phrase in phrases]
    return [phrase for phrase in plain if phrase] * PHRASES_COUNT


@functools.cache
def ordinary() -> tuple[str, ...]:
    """What everybody says on the phone and newspapers do not: times, dates, phone numbers, yes and no."""
    hours = "one two three four five six seven eight nine ten eleven twelve".split()
    days = "monday tuesday wednesday thursday friday saturday sunday".split()
    months = "january february march april may june july august september october november december".split()
    ordinals = (
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth thirtieth"
    ).split()
    digits = ["zero", "oh", *hours[:9]]
    said = [
        "yes", "no", "yes please", "no thanks", "no thank you", "hello", "hi", "good morning", "good evening", "okay",
        "thank you very much", "goodbye", "thanks goodbye", "that's right", "that's all", "um", "uh", "well",
    ]  # fmt: skip
    for hour in hours:
        said += [
            f"at {hour}",
            f"for {hour}",
            f"{hour} people",
            f"{hour} o'clock",
            f"{hour} thirty",
            f"half past {hour}",
        ]
        said += [f"{hour} fifteen", f"{hour} p m"]
    for day in days:
        said += [f"on {day}", day, f"next {day}", f"{day} evening"]
    for month, ordinal in itertools.product(months, ordinals):
        said += [f"the {ordinal} of {month}", f"{month} {ordinal}"]
    # Every digit after every other, in numbers of the usual length.
    for first, step in itertools.product(range(len(digits)), range(len(digits))):
        said.append("my number is " + " ".join(digits[(first + step * i) % len(digits)] for i in range(9)))
    return tuple(said)


def arpa(sentences: Sequence[str]) -> str:
    """A trigram model of `sentences` with half of the mass left to shorter histories, in the ARPA format."""
    counts: list[dict[tuple[str, ...], int]] = [{}, {}, {}]
    for sentence in sentences:
        words = ("<s>", *sentence.split(), "</s>")
        for order, grams in enumerate(counts, 1):
            for i in range(len(words) - order + 1):
                gram = words[i : i + order]
                grams[gram] = grams.get(gram, 0) + 1
    total = sum(counts[0].values())
    probability = [{gram: n / total for gram, n in counts[0].items()}]
    for shorter, more in itertools.pairwise(counts):
        probability.append({gram: 0.5 * n / shorter[gram[:-1]] for gram, n in more.items()})
    lines = ["\\data\\", *(f"ngram {order}={len(grams)}" for order, grams in enumerate(counts, 1))]
    for order, known in enumerate(probability, 1):
        lines += ["", f"\\{order}-grams:"]
        seen: dict[tuple[str, ...], float] = {}
        """By history: what the words that were seen after it have without it."""
        if order < len(probability):
            for gram in probability[order]:
                seen[gram[:-1]] = seen.get(gram[:-1], 0.0) + known[gram[1:]]
        for gram, p in sorted(known.items()):
            backoff = f"\t{math.log10(0.5 / max(1e-6, 1 - seen.get(gram, 0.0))):.4f}" if order < 3 else ""
            lines.append(f"{math.log10(p):.4f}\t{' '.join(gram)}{backoff}")
    return "\n".join([*lines, "", "\\end\\", ""])
