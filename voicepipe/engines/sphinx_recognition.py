"""One utterance at a pocketsphinx decoder: noise taken out, decoded, and what a voice that comes back costs."""

import time
from collections import deque
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from voicepipe.audio import Pcm, dbfs, ms_to_samples
from voicepipe.engines.base import Hypothesis
from voicepipe.engines.denoise import HOP, Denoiser
from voicepipe.engines.sphinx_answers import possible
from voicepipe.engines.sphinx_decoder import Kind, SphinxDecoder
from voicepipe.engines.sphinx_misheard import SOUNDS_LIKE, is_full_name, is_instead, is_odd_name
from voicepipe.engines.sphinx_numbers import is_dictated
from voicepipe.errors import EngineError
from voicepipe.turn.answers import Wanted

CHUNK = ms_to_samples(60)
"""Sound is decoded in pieces of at least this length, and looked at for a partial after PARTIAL."""
PARTIAL = ms_to_samples(100)
PIECE = ms_to_samples(400)
"""No job decodes more than this, except for the words at the end: others wait for a thread meanwhile."""
REPLAY = ms_to_samples(2500)
"""A pause after more sound than this splits the recognition: decoding it all again would hold up the words to come."""
BEGINNING, BEGINNING_MOST = ms_to_samples(500), ms_to_samples(3000)
"""Decoding waits for so much voice, which tells what the caller sounds like and whether the line is a telephone's.
After 300 ms every third word of a short answer was wrong. More than the most of it tells nothing more."""
GAP = LOOK = 2 * HOP
"""After so much silence a short answer may be over ("four"), and decoding begins on less than BEGINNING. Until then
sound is looked at in pieces of LOOK. `settle`, which comes a little later, would begin on as little."""
SHORT, MORE = ms_to_samples(150), ms_to_samples(100)
"""It may be over if there was so much voice. If MORE of it follows it was not: decoding begins anew."""
LEAD = ms_to_samples(150)
"""So much of what came before the voice is decoded. With 300 ms the slowest short answers took 120 ms longer."""
SILENCE = ms_to_samples(500) // HOP * HOP
"""So much of what follows after `settle` is kept, for the soft beginning of a voice that comes back."""
BACK_DB = 28.0
"""After `settle`, sound within this of the loudest so far (noise taken out) is the voice that comes back."""
NOTHING = np.empty(0, np.int16)


class Recognition:
    """The blocking half of a stream: runs on worker threads, one job at a time.

    `inbox` is where the event loop puts more sound. A job takes what is there when it runs, so that none is lost with a
    job that is dropped before.
    """

    def __init__(self, decoder: SphinxDecoder, inbox: deque[Pcm], wants: Wanted = "") -> None:
        """`wants`: what the caller has been asked for."""
        self.decoder = decoder
        self._wants = wants
        self.heard = 0
        """Samples taken from the inbox."""
        self._inbox = inbox
        self._denoiser = Denoiser()
        self.took_s = 0.0
        """The latest job."""
        self._open = self._broken = False
        self._heard: list[Pcm] = []
        """Sound without noise since the last split, for decoding it again; up to `settle`."""
        self._begun = 0
        """The sample of it at which decoding began."""
        self._tried = False
        """Decoding has begun at a GAP, which it does once."""
        self._more: int | None = None
        """Samples of voice since then; None: it did not begin so, or goes on as it began."""
        self._silence: Pcm = NOTHING
        """The last of what came after `settle`: SILENCE at most."""
        self._ahead: list[Pcm] = []
        """What of it is still to be decoded."""
        self._looked = 0
        self._loudest = -96.0
        self._before = ""
        """Words before the last split."""
        self._settled: Hypothesis | None = None

    def hear(self) -> Hypothesis | None:
        """Decode what has come; a partial if it is time for one."""
        self._guard(self._hear)
        if self._settled or not self._open or self.heard - self._looked < PARTIAL:
            return None
        self._looked = self.heard
        return Hypothesis(self._words(), self.heard)

    def hear_out(self) -> Hypothesis | None:
        """Decode all that has come; a partial unless its best words are there already."""
        self._guard(lambda: self._hear(last=self._open))
        return Hypothesis(self._words(), self.heard) if self._open and not self._settled else None

    def settle(self) -> Hypothesis:
        """Find the best words of everything that has come."""
        self._guard(self._settle)
        assert self._settled is not None
        return Hypothesis(self._settled.text, self.heard, self._settled.ends)

    def _settle(self) -> None:
        self._hear(last=True, begin=True)
        if self._settled is None:
            guess = self.decoder.words() if self._open else ""
            self._end()
            words = self.decoder.words() if self._heard else ""
            ends = self.decoder.ends(words, guess)
            self._settled = Hypothesis(f"{self._before} {self._meant(words)}".strip(), self.heard, ends)

    def _meant(self, words: str) -> str:
        """`words`; where nobody answers so, and the sound says it, what was said instead."""
        if is_dictated(words, asked=self._wants == "digits"):
            return self._search_again("numbers")[0] or words
        if not words or self._before:
            return words
        if alike := SOUNDS_LIKE.get(self._wants, {}).get(words):
            return alike
        if self._wants == "value" and words not in possible():
            return self.decoder.likeliest(partial(is_instead, words)) or words
        if self._wants == "name" and is_odd_name(words):
            return next((each for each in self._search_again("names") if is_full_name(each, words)), words)
        return words

    def _search_again(self, kind: Kind) -> list[str]:
        return self.decoder.search_again(np.concatenate(self._heard)[self._begun :], kind)

    def close(self) -> None:
        """Leave the decoder ready for another utterance. Raises EngineError if it is not."""
        self._guard(self._end)

    def _guard(self, job: Callable[[], None]) -> None:
        """Once something failed the words are not to be trusted, nor is the decoder."""
        began = time.monotonic()
        try:
            job()
        except Exception as error:
            self._broken = True
            raise EngineError(f"The recogniser failed: {error}") from error
        finally:
            self.took_s = time.monotonic() - began
        if self._broken:
            raise EngineError("The recogniser failed during this utterance.")

    @property
    def work(self) -> int:
        """Samples that it takes to hear all that was taken from the inbox; once more, if a voice may be back."""
        again = self._kept if self._settled or self._more is not None else 0
        return sum(sound.size for sound in self._ahead) + min(again, REPLAY) + self._silence.size

    @property
    def piece(self) -> int:
        """So many samples of new sound are worth a job."""
        return LOOK if self._may_begin_early else CHUNK

    @property
    def behind(self) -> bool:
        """There is more to decode than one job does."""
        return self._open and sum(sound.size for sound in self._ahead) >= CHUNK

    @property
    def _may_begin_early(self) -> bool:
        """An answer is expected. Telephone numbers are longer, and what is said unasked mostly is."""
        return bool(self._wants) and self._wants != "digits" and not (self._tried or self._open)

    @property
    def _kept(self) -> int:
        """Samples that can be decoded again."""
        return sum(sound.size for sound in self._heard)

    def _hear(self, *, last: bool = False, begin: bool = False) -> None:
        """`last`: decode all that has come, in one go. `begin`: on however little."""
        pcm = np.concatenate([NOTHING, *(self._inbox.popleft() for _ in range(len(self._inbox)))])
        self.heard += pcm.size
        sound = self._denoiser.clean(pcm, last=last)
        if sound.size:
            voice = self._find_voice(sound)
            if self._settled is None:
                self._heard.append(sound)
                self._ahead.append(sound)
                if self._more is not None:
                    self._went_on(self._more, sound)
            elif voice is None:
                self._silence = np.concatenate([self._silence, sound])[-SILENCE:]
            else:
                quiet = np.concatenate([self._silence, sound[:voice]])[-SILENCE:]
                self._ahead = [self._resume(self._settled, np.concatenate([quiet, sound[voice:]]))]
        if self._ahead and self._settled is None:
            self._decode(np.concatenate(self._ahead), last, begin)

    def _went_on(self, more: int, sound: Pcm) -> None:
        """Decoding began at a gap, and `more` samples of voice and now `sound` followed: with MORE, begin anew. What is
        too long for that stays as it was begun."""
        self._more = more + HOP * int(self._voiced(sound).sum())
        if self._kept > REPLAY:
            self._more = None
        elif self._more >= MORE:
            self._end()
            self._ahead = [np.concatenate(self._heard)]

    def _decode(self, sound: Pcm, last: bool, begin: bool) -> None:
        if not self._open:
            begins = self._find_voice(sound) or 0
            voice = sound[begins:]
            if voice.size < BEGINNING and not begin:
                if not self._may_be_all(voice):
                    return
                self._tried, self._more, last = True, 0, True
            self.decoder.start(voice[:BEGINNING_MOST], narrow=bool(self._denoiser.narrow), wants=self._wants)
            self._open = True
            self._begun = max(0, begins - LEAD)
            sound = sound[self._begun :]
        piece = sound.size if last else PIECE
        self._ahead = [sound[piece:]] if sound.size > piece else []
        self.decoder.feed(sound[:piece])

    def _may_be_all(self, voice: Pcm) -> bool:
        """Of an answer to what was asked."""
        if not self._may_begin_early:
            return False
        voiced = self._voiced(voice)
        return HOP * int(voiced.sum()) >= SHORT and not voiced[-GAP // HOP :].any()

    def _find_voice(self, sound: Pcm) -> int | None:
        """The sample at which the first voice begins in `sound`, int16[n], n a multiple of HOP above 0."""
        voiced = self._voiced(sound)
        return int(voiced.argmax()) * HOP if voiced.any() else None

    def _voiced(self, sound: Pcm) -> NDArray[np.bool_]:
        """Of each HOP of `sound`, int16[n], n a multiple of HOP above 0: is it a voice?"""
        levels = np.array([dbfs(hop) for hop in sound.reshape(-1, HOP)])
        self._loudest = max(self._loudest, float(levels.max()))
        return levels > self._loudest - BACK_DB

    def _resume(self, settled: Hypothesis, after: Pcm) -> Pcm:
        """The voice is back, with `after`: what must be decoded (again)."""
        self._settled = None
        if self._kept > REPLAY:
            self._before = settled.text
            self._heard = []
        sound: Pcm = np.concatenate([*self._heard, after])
        self._silence = NOTHING
        self._heard = [sound]
        return sound

    def _end(self) -> None:
        self._ahead = []
        self._more = None
        if self._open:
            self._open = False
            self.decoder.end()

    def _words(self) -> str:
        return f"{self._before} {self.decoder.words()}".strip() if self._heard else self._before
