"""One pocketsphinx decoder, blocking, behind four methods. All of the C library's names are in this file.

The Python binding holds the GIL while it decodes, so the C library inside its wheel is called through ctypes, which
lets go of it: threads then decode side by side, beside the event loop. See include/pocketsphinx.h of pocketsphinx 5.1.
"""

import ctypes
import functools
import importlib.util
import math
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from voicepipe.audio import Pcm
from voicepipe.engines.sphinx_answers import WEIGHTS, names_arpa, values_arpa
from voicepipe.engines.sphinx_language import SphinxLanguage, as_heard, numbers_arpa
from voicepipe.errors import EngineError, EngineMissing
from voicepipe.turn import odds
from voicepipe.turn.answers import Wanted

LOG10_OF_BASE = math.log10(1.0001)
"""pocketsphinx counts log-probabilities to this base."""
CALLERS_WEIGHT = 0.3
"""Share of what callers say, and of the agent's own phrases, in the language model; the rest is from newspapers."""
BEST = 12
"""So many readings of the utterance are weighed to tell whether it is finished."""
SCORE_SCALE = 195.0
"""Acoustic scores that differ by this much make a reading e times as likely: a twentieth of what they say, because
neighbouring frames say the same."""
LANGUAGE_WEIGHT = 1.0
"""Of a reading's log10 probability by the language model beside that."""

SEARCH = {
    "maxhmmpf": 4500, "wbeam": 1e-20, "fwdflatsfwin": 12, "fwdflatwbeam": 1e-18,
    "lw": 7.5, "fwdflatlw": 9.8, "bestpathlw": 11.0,
}  # fmt: skip
"""Bounds on the search: of each frame in the first pass, which is a third faster so, and of the second, at the end of
the utterance, in which a word may begin so many frames away from where the first pass put it (120 ms, default 250).
Ends of words that are so much less likely than the best are dropped (default 7e-29 in both): the words are there a
third sooner after the end, for half a point more word errors. The language model counts for a sixth more than by
default (6.5, 8.5 and 9.5): it knows what callers say."""
WIDE = (47.3, 5.2, 5.0, 19.7, 1.5, -0.3, 2.6, -7.2, -3.8, -2.4, 5.8, 3.1, 1.5)
NARROW = (38.1, 23.3, -20.7, 45.4, -17.6, 4.9, 6.8, -16.8, 4.5, -10.4, 5.0, 1.8, -0.2)
"""Mean cepstra of speech, full-band and by G.711, found by decoding development sentences: with the wrong one, nine in
ten words of a telephone's speech are wrong. No caller gets what the one before left."""
OWN_SHARE = 0.4
"""Of the caller's own voice, by how the utterance begins, in the mean cepstrum that it is decoded with: one word error
in eight less. pocketsphinx itself moves away from the mean that it is given only over five seconds."""
DICTIONARY = "cmudict-en-us.dict"
MIXED, CHEAP, EXPECTED = b"mixed", b"cheap", b"expected"
"""Searches: for all words; for a single one, which takes a sixth of the time; for the words of one Kind."""
MEAN_FRAMES, FRAME = 500, 160
"""cmn_live_set counts the mean that it is given as so many frames (of 10 ms)."""
GUESS_WEIGHT = 0.3
"""Of the words before the end of the utterance was searched, in telling whether it is finished."""

POINTER, TEXT, NUMBER, SIZE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t
MODELS = ("english", "own", "values", "names")
"""What the language model of MIXED is mixed of."""
Kind = Literal["names", "numbers"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What EXPECTED may be for; one search for both, since each search takes 16 MB."""
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "err_set_loglevel_str": (NUMBER, TEXT),
    "ps_config_init": (POINTER, POINTER),
    "ps_config_free": (NUMBER, POINTER),
    "ps_config_set_str": (POINTER, POINTER, TEXT, TEXT),
    "ps_config_set_bool": (POINTER, POINTER, TEXT, NUMBER),
    "ps_config_set_int": (POINTER, POINTER, TEXT, ctypes.c_long),
    "ps_config_set_float": (POINTER, POINTER, TEXT, ctypes.c_double),
    "ps_init": (POINTER, POINTER),
    "ps_free": (NUMBER, POINTER),
    "ps_start_stream": (NUMBER, POINTER),
    "ps_set_cmn": (NUMBER, POINTER, TEXT),
    "ps_get_cmn": (TEXT, POINTER, NUMBER),
    "ps_start_utt": (NUMBER, POINTER),
    "ps_process_raw": (NUMBER, POINTER, POINTER, SIZE, NUMBER, NUMBER),
    "ps_end_utt": (NUMBER, POINTER),
    "ps_get_hyp": (TEXT, POINTER, POINTER),
    "ps_get_logmath": (POINTER, POINTER),
    "ps_add_lm": (NUMBER, POINTER, TEXT, POINTER),
    "ps_add_keyphrase": (NUMBER, POINTER, TEXT, TEXT),
    "ps_activate_search": (NUMBER, POINTER, TEXT),
    "ngram_model_read": (POINTER, POINTER, TEXT, NUMBER, POINTER),
    "ngram_model_free": (NUMBER, POINTER),
    "ngram_model_set_init": (POINTER, POINTER, POINTER, POINTER, POINTER, ctypes.c_int32),
    "ngram_model_set_interp": (POINTER, POINTER, POINTER, POINTER),
    "ps_nbest": (POINTER, POINTER),
    "ps_nbest_next": (POINTER, POINTER),
    "ps_nbest_hyp": (TEXT, POINTER, POINTER),
    "ps_nbest_free": (None, POINTER),
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


def never_heard(phrases: Iterable[str]) -> str:
    """Which words of `phrases` are not in the dictionary, and what helps; empty: all are. Raises EngineMissing."""
    words = dict.fromkeys(word for phrase in as_heard(phrases) for word in phrase.split())
    with (_library()[1] / DICTIONARY).open(encoding="utf-8") as file:
        for line in file:
            words.pop(line.partition(" ")[0], None)
    if not words:
        return ""
    return (
        f"pocketsphinx knows no pronunciation of {', '.join(words)}, and never hears it. In examples and vocabulary, "
        "write words that sound like it."
    )


class SphinxDecoder:
    """One utterance at a time, and one thread at a time. About 100 MB; loads in half a second."""

    def __init__(self, language: SphinxLanguage) -> None:
        """`language`: what callers are likely to say. Raises EngineMissing, EngineError."""
        self._decoder: int | None = None
        self._lm: int | None = None
        self._mixed: int | None = None
        self._expected: int | None = None
        self._mean = np.array(WIDE)
        self._c, model = _library()
        config = self._c.ps_config_init(None)
        for key, path in (("hmm", "en-us"), ("dict", DICTIONARY)):
            self._c.ps_config_set_str(config, key.encode(), str(model / path).encode())
        for key, bound in SEARCH.items():
            if isinstance(bound, float):
                self._c.ps_config_set_float(config, key.encode(), bound)
            else:
                self._c.ps_config_set_int(config, key.encode(), bound)
        self._decoder = self._c.ps_init(config)
        try:
            self._load(config, model, language)
        finally:
            self._c.ps_config_free(config)  # the decoder keeps what it needs

    def _load(self, config: int, model: Path, language: SphinxLanguage) -> None:
        if not self._decoder:
            raise EngineError(f"pocketsphinx cannot load its model in {model}: install the wheel again.")
        self._ends = language.ends
        # Not by the setting "lm": that would build a search of its own for it, 57 MB that nobody uses.
        self._lm = self._read(config, model / "en-us.lm.bin")
        self._adapt(config, language.arpa)

    def start(self, voice: Pcm, *, narrow: bool = False, wants: Wanted = "") -> None:
        """Begin an utterance; `voice` is how it begins, int16[n] without silence. `narrow`: it was sampled at 8 kHz.
        `wants`: what the caller has been asked for."""
        self._expect(wants)
        mean = np.array(NARROW if narrow else WIDE)
        if frames := voice.size // FRAME:
            # Ending an utterance searches all of it, though it was fed without a search: here by one that costs little.
            self._check(self._c.ps_activate_search(self._decoder, CHEAP))
            self._begin(mean)
            self._feed(voice, search=False)
            self._check(self._c.ps_end_utt(self._decoder))
            self._check(self._c.ps_activate_search(self._decoder, MIXED))
            moved = np.array([float(value) for value in self._c.ps_get_cmn(self._decoder, 1).split(b",")])
            mean += OWN_SHARE * (moved - mean) * (MEAN_FRAMES + frames) / frames
        self._mean = mean
        self._begin(mean)

    def _expect(self, wants: Wanted) -> None:
        answers = sum(WEIGHTS[wants])
        shares = (1 - CALLERS_WEIGHT, CALLERS_WEIGHT)
        self._weigh(self._mixed, MODELS, [*((1 - answers) * share for share in shares), *WEIGHTS[wants]])

    def _weigh(self, models: int | None, names: Sequence[str], shares: Sequence[float]) -> None:
        self._c.ngram_model_set_interp(models, _texts(names), (ctypes.c_float * len(shares))(*shares))

    def _begin(self, mean: NDArray[np.float64]) -> None:
        self._check(self._c.ps_start_stream(self._decoder))
        self._check(self._c.ps_set_cmn(self._decoder, ",".join(f"{value:.2f}" for value in mean).encode()))
        self._check(self._c.ps_start_utt(self._decoder))

    def _feed(self, pcm: Pcm, *, search: bool) -> None:
        self._check(self._c.ps_process_raw(self._decoder, pcm.ctypes.data, pcm.size, not search, 0))

    def feed(self, pcm: Pcm) -> None:
        """Decode int16[n] at 16 kHz; takes about a tenth of its duration."""
        self._feed(pcm, search=True)

    def end(self) -> None:
        """Search the whole utterance for its best words."""
        self._check(self._c.ps_end_utt(self._decoder))

    def words(self) -> str:
        """Before `end`: a guess that costs nothing. After: the words."""
        found: bytes | None = self._c.ps_get_hyp(self._decoder, None)
        return found.decode() if found else ""

    def search_again(self, sound: Pcm, kind: Kind) -> list[str]:
        """After `end`: readings of `sound`, int16[n], what was fed, as if nothing but words of this kind were ever
        said: first what the search found, then others by their sound, the likeliest first. `words`, `likeliest` and
        `ends` go on with what was found before."""
        self._weigh(self._expected, KINDS, [float(each == kind) for each in KINDS])
        self._check(self._c.ps_activate_search(self._decoder, EXPECTED))
        try:
            self._begin(self._mean)
            self.feed(sound)
            self.end()
            found = self._readings()
            return [self.words(), *sorted(found, key=found.__getitem__, reverse=True)]
        finally:
            self._check(self._c.ps_activate_search(self._decoder, MIXED))

    def likeliest(self, fits: Callable[[str], bool]) -> str:
        """After `end`: the likeliest reading by its sound alone that `fits`; empty: none of the best does."""
        found = self._readings()
        return max(filter(fits, found), key=found.__getitem__, default="")

    def ends(self, text: str, guess: str = "") -> float | None:
        """After `end`: the probability that a turn ends after `text`; None without words.

        The last word is often wrong ("me out" for "me at"), so it is the mean over the likeliest readings of the sound.
        `guess`: `words` before `end`, which was not drawn towards words that end sentences.
        """
        if not text:
            return None
        readings = self._readings() or {text: 0}
        logs = [score / SCORE_SCALE + LANGUAGE_WEIGHT * self._logprob(reading) for reading, score in readings.items()]
        weights = [math.exp(log - max(logs)) for log in logs]
        ends = (self._ends.probability(reading, self._logprob_of("</s>", reading)) for reading in readings)
        mean = sum(weight * end for weight, end in zip(weights, ends, strict=True)) / sum(weights)
        guessed = self._ends.probability(guess) if guess else mean
        return odds.probability((1 - GUESS_WEIGHT) * odds.log_odds(mean) + GUESS_WEIGHT * odds.log_odds(guessed))

    def _readings(self) -> dict[str, int]:
        """The likeliest readings of the utterance by its sound alone, and their scores."""
        found: dict[str, int] = {}
        score = ctypes.c_int32()
        node = self._c.ps_nbest(self._decoder)
        for _ in range(3 * BEST):
            if not node or len(found) == BEST:
                break
            text: bytes | None = self._c.ps_nbest_hyp(node, ctypes.byref(score))
            if text:
                found.setdefault(text.decode(), score.value)
            node = self._c.ps_nbest_next(node)  # at the end it frees itself
        if node:
            self._c.ps_nbest_free(node)
        return found

    def _logprob(self, text: str) -> float:
        """log10 probability of the words, without the end of the sentence."""
        words = text.split()
        return sum(self._logprob_of(word, " ".join(words[:i])) for i, word in enumerate(words))

    def _logprob_of(self, word: str, before: str) -> float:
        context = [word.encode(), *(word.encode() for word in reversed(["<s>", *before.split()][-2:]))]
        logprob: int = self._c.ngram_prob(self._lm, (TEXT * len(context))(*context), len(context))
        return logprob * LOG10_OF_BASE

    def free(self) -> None:
        """Give the memory back, which takes 50 ms; the decoder must not be used again."""
        decoder, models = self._decoder, (self._mixed, self._expected, self._lm)
        self._decoder = self._mixed = self._expected = self._lm = None
        _free(self._c, decoder, models)

    def __del__(self) -> None:
        """One that nobody knows any more does so itself; on a thread, for the event loop may be who forgot it."""
        if self._decoder and not sys.is_finalizing():
            freed = self._c, self._decoder, (self._mixed, self._expected, self._lm)
            threading.Thread(target=_free, args=freed, name="sphinx-free", daemon=True).start()

    def _adapt(self, config: int, arpa: str) -> None:
        """Interpolate the model's language model with `arpa` and the answers; add the searches that need none."""
        made: list[int] = []
        try:
            made.extend(self._made(config, text) for text in (arpa, values_arpa(), names_arpa(), numbers_arpa()))
            own, values, names, numbers = made
            self._mixed = self._mixture(config, MODELS, (self._lm, own, values, names))
            self._expected = self._mixture(config, KINDS, (names, numbers))
            self._expect("")
            for name, model in ((MIXED, self._mixed), (EXPECTED, self._expected)):
                self._check(self._c.ps_add_lm(self._decoder, name, model))
        finally:
            for model in made:  # whoever uses them keeps them
                self._c.ngram_model_free(model)
        self._check(self._c.ps_add_keyphrase(self._decoder, CHEAP, b"the"))
        self._check(self._c.ps_activate_search(self._decoder, MIXED))

    def _mixture(self, config: int, names: Sequence[str], models: Sequence[int | None]) -> int:
        """Several language models as one, in which each has its share."""
        count = len(models)
        equal = (ctypes.c_float * count)(*[1 / count] * count)
        made: int | None = self._c.ngram_model_set_init(config, (POINTER * count)(*models), _texts(names), equal, count)
        if not made:
            raise EngineError("pocketsphinx cannot mix its language models; its log says why at log level ERROR.")
        return made

    def _made(self, config: int, arpa: str) -> int:
        with tempfile.NamedTemporaryFile("w", suffix=".lm") as file:
            file.write(arpa)
            file.flush()
            return self._read(config, Path(file.name))

    def _read(self, config: int, model: Path) -> int:
        found: int | None = self._c.ngram_model_read(
            config, str(model).encode(), 0, self._c.ps_get_logmath(self._decoder)
        )
        if not found:
            raise EngineError(f"pocketsphinx cannot read the language model {model}.")
        return found

    def _check(self, result: int) -> None:
        if result < 0:
            raise EngineError("pocketsphinx failed; its log says why at log level ERROR.")


def _texts(words: Sequence[str]) -> "ctypes.Array[ctypes.c_char_p]":
    return (TEXT * len(words))(*(word.encode() for word in words))


def _free(c: ctypes.CDLL, decoder: int | None, models: Iterable[int | None]) -> None:
    if decoder:
        c.ps_free(decoder)
    for model in filter(None, models):
        c.ngram_model_free(model)
