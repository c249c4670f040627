"""Makes the clips of `utterances/*.toml` and their manifest: `python -m latency_probes.generate`.

For developers only; running the probes needs nothing of this, because the clips are part of the package. Needs no
network, but the packages of the tests, the model of Piper's joe (`voicepipe models pull piper-joe`), and `flite` with
its voices slt and rms (Debian: apt install flite). The same versions of these make the same clips. `--german` needs
none but the packages: it makes the German callers' clips alone.

The manifest keeps where a caller is to pause; the pause is cut in when the probe runs.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import av
import numpy as np

from latency_probes.clips import (
    FOLDER,
    GERMAN,
    GERMAN_PAUSE,
    GERMAN_VOICES,
    GUEST_KINDS,
    HARD,
    HARD_VOICES,
    MANIFEST,
    VOICES,
)
from latency_probes.guest_file import guests
from latency_probes.voices import Take, flite, natural
from voicepipe.audio import Pcm, dbfs, ms_to_samples
from voicepipe.base.errors import EngineMissing
from voicepipe.engines.weights import hub

LEVEL_DBFS = -23.0
"""Level of the speech in every clip, RMS over its voiced frames."""
BIT_RATE = 24_000
VOICED_DBFS = -45.0
JOE, JOE_FILE = "piper-joe", "en_US-joe-medium.onnx"

NOISES = ("quiet", "babble_20", "quiet", "pink_15", "quiet", "pink_20", "quiet", "babble_15")
"""What the clips' callers have around them, in turn: half of them call from a quiet room."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One text of sentences.toml. `before` is what is said before the pause; empty without one."""

    number: int
    kind: str
    intent: str
    place: str
    text: str
    before: str
    unsaid: str = ""
    """What the caller of an unfinished text has in mind and does not say."""


def main() -> int:
    """Write the clips and the manifest; returns the exit status."""
    cli = argparse.ArgumentParser(prog="python -m latency_probes.generate")
    cli.add_argument("--joe", type=Path, help=f"where {JOE_FILE} is (default: where `voicepipe models pull` puts it)")
    cli.add_argument("--german", action="store_true", help="make the German callers' clips alone, and keep the others")
    options = cli.parse_args()
    try:
        clips = list(all_but_german() if options.german else made(options.joe or hub.local(JOE) / JOE_FILE))
        clips += german()
    except EngineMissing:
        print(f"the voice joe is missing: voicepipe models pull {JOE}, or --joe FILE", file=sys.stderr)
        return 2
    MANIFEST.write_text("[\n" + ",\n".join(json.dumps(clip) for clip in clips) + "\n]\n")
    size = sum(file.stat().st_size for file in FOLDER.rglob("*.opus"))
    print(f"{len(clips)} clips, {size / 1e6:.2f} MB")
    return 0


def made(joe: Path) -> Iterator[dict[str, object]]:
    """Every English clip's line of the manifest; its file is written."""
    sentences = read_sentences(FOLDER / "sentences.toml")
    networks = by_network(joe)
    for sentence in (*sentences, *said_by_guests()):
        for number, voice in enumerate(VOICES):
            yield make_clip(sentence, sentence.kind, voice, number, networks[voice](sentence))
    for kind, spoken in HARD.items():
        for sentence in sentences:
            for number, voice in enumerate(HARD_VOICES):
                if sentence.kind == spoken:
                    take = flite.speak(sentence.text, voice, sentence.before)
                    yield make_clip(sentence, kind, voice, number, take)


def german() -> Iterator[dict[str, object]]:
    """The same of German callers' clips."""
    from latency_probes.voices import espeak

    for sentence in read_sentences(FOLDER / "sentences_de.toml"):
        for number, (voice, name) in enumerate(GERMAN_VOICES.items()):
            yield make_clip(sentence, sentence.kind, voice, number, espeak.speak(sentence.text, name, sentence.before))


def all_but_german() -> list[dict[str, object]]:
    """Their lines of the manifest as they are."""
    lines: list[dict[str, object]] = json.loads(MANIFEST.read_text())
    return [line for line in lines if line["kind"] not in (GERMAN, GERMAN_PAUSE)]


def by_network(joe: Path) -> dict[str, Callable[[Sentence], Take]]:
    """How each of the natural voices says a sentence."""
    # Loaded now: tests that only read the sentences need no networks.
    from latency_probes.voices.heart import Heart
    from latency_probes.voices.joe import Joe

    def by(network: natural.Network) -> Callable[[Sentence], Take]:
        return lambda sentence: say(sentence, network)

    return {network.name: by(network) for network in (Heart(), Joe(joe))}


def say(sentence: Sentence, network: natural.Network) -> Take:
    """Spoken by `network`, pauses inside a phrase as those of somebody who looks for words."""
    name = f"{sentence.kind}-{sentence.number:03}"
    if not sentence.unsaid:
        held = sentence.kind == "pause_inside"
        return natural.speak(network, sentence.text, name, sentence.before, held=held)
    take = natural.speak(network, f"{sentence.text} {sentence.unsaid}", name, sentence.text, held=True)
    return Take(take.pcm[: take.cut], take.rate)


def read_sentences(path: Path) -> list[Sentence]:
    """Every text of the file at `path`, numbered within its kind."""
    sentences = []
    for kind, groups in tomllib.loads(path.read_text()).items():
        texts = [(group, text) for group in groups for text in group["texts"]]
        for number, (group, text) in enumerate(texts, 1):
            before, _, after = (" ".join(part.split()) for part in text.partition("|"))
            said = (f"{before} {after}", before, "") if after else (before, "", "")
            if kind == "unfinished":
                said = (before, "", after)
            sentences.append(Sentence(number, kind, group["intent"], group.get("place", ""), *said))
    return sentences


def said_by_guests() -> list[Sentence]:
    """Every text of guests.toml once."""
    texts = sorted({found for guest in guests() for act in guest.acts for found in act.texts()})
    numbers = {kind: count(1) for kind in GUEST_KINDS}
    return [Sentence(next(numbers[kind]), kind, "guest", "", text, "") for kind, text in texts]


def make_clip(sentence: Sentence, kind: str, voice: str, number: int, take: Take) -> dict[str, object]:
    """Write the clip of the voice of this `number`, and return its line of the manifest."""
    first, last = voiced_span(take.pcm, take.rate)
    start = max(0, first - ms_to_samples(60, take.rate))
    end = min(take.pcm.size, last + ms_to_samples(120, take.rate))
    file = Path(kind) / f"{sentence.number:03}-{voice}.opus"
    (FOLDER / file).parent.mkdir(parents=True, exist_ok=True)
    encode(levelled(take.pcm, first, last)[start:end], take.rate, FOLDER / file)
    noise = NOISES[(3 * sentence.number + number) % len(NOISES)]
    clip: dict[str, object] = {
        "id": f"{kind}-{sentence.number:03}-{voice}",
        "kind": kind,
        "voice": voice,
        "text": sentence.text,
        "intent": sentence.intent,
        "noise": "quiet" if kind in ("barge_in", *GUEST_KINDS, GERMAN, GERMAN_PAUSE) else noise,
        "file": file.as_posix(),
    }
    if sentence.before:
        clip |= {"before": sentence.before, "cut_ms": round((take.cut - start) * 1000 / take.rate)}
    if sentence.place:
        clip["place"] = sentence.place
    return clip


def voiced_span(pcm: Pcm, rate: int) -> tuple[int, int]:
    """The samples between which `pcm` is voiced: frames of 10 ms above -45 dBFS."""
    frame = ms_to_samples(10, rate)
    levels = [dbfs(pcm[at : at + frame]) for at in range(0, pcm.size - frame + 1, frame)]
    voiced = [index for index, level in enumerate(levels) if level > VOICED_DBFS]
    return voiced[0] * frame, (voiced[-1] + 1) * frame


def levelled(pcm: Pcm, first: int, last: int) -> Pcm:
    """`pcm` scaled so that its voiced part stands at LEVEL_DBFS, without clipping."""
    gain = 10 ** ((LEVEL_DBFS - dbfs(pcm[first:last])) / 20)
    gain = min(gain, 32000 / float(np.abs(pcm.astype(np.int32)).max()))
    return np.round(pcm * gain).astype(np.int16)


def encode(pcm: Pcm, rate: int, path: Path) -> None:
    """Write `pcm` (int16[n] at `rate`) as Ogg/Opus."""
    # Otherwise each file has a random number in it.
    with av.open(str(path), "w", format="ogg", options={"fflags": "bitexact"}) as container:
        stream = container.add_stream("libopus", rate=rate, layout="mono", options={"application": "voip"})
        stream.bit_rate = BIT_RATE
        frame = av.AudioFrame.from_ndarray(pcm.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = rate
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


if __name__ == "__main__":
    sys.exit(main())
