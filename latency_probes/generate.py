"""Makes the clips of `utterances/*.toml` and their manifest: `python -m latency_probes.generate`.

For developers only, and needs `flite` with the voices slt, rms and awb (Debian: apt install flite); running the probes
needs neither, because the clips are part of the package. Every sentence is spoken in one breath; where a caller is to
pause, the manifest keeps the word boundary and the pause is cut in when the probe runs.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
import wave
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import av
import numpy as np

from latency_probes.clips import FOLDER, GUEST_KINDS, MANIFEST, VOICES
from latency_probes.guest_file import guests
from voicepipe.audio import RATE, Pcm, dbfs, ms_to_samples

LEVEL_DBFS = -23.0
"""Level of the speech in every clip, RMS over its voiced frames."""
BIT_RATE = 24_000
FRAME = RATE // 100
VOICED_DBFS = -45.0

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


def main() -> int:
    """Write the clips and the manifest; returns the exit status."""
    sentences = [*read_sentences(FOLDER / "sentences.toml"), *said_by_guests()]
    jobs = [(sentence, voice) for sentence in sentences for voice in VOICES]
    with ThreadPoolExecutor(2) as pool:
        clips = list(pool.map(lambda job: make_clip(*job), jobs))
    MANIFEST.write_text("[\n" + ",\n".join(json.dumps(clip) for clip in clips) + "\n]\n")
    size = sum(file.stat().st_size for file in FOLDER.rglob("*.opus"))
    print(f"{len(clips)} clips, {size / 1e6:.2f} MB")
    return 0


def read_sentences(path: Path) -> list[Sentence]:
    """Every text of the file at `path`, numbered within its kind."""
    sentences = []
    for kind, groups in tomllib.loads(path.read_text()).items():
        texts = [(group, text) for group in groups for text in group["texts"]]
        for number, (group, text) in enumerate(texts, 1):
            before = text.split("|")[0].strip() if "|" in text else ""
            spoken = " ".join(text.replace("|", " ").split())
            sentences.append(Sentence(number, kind, group["intent"], group.get("place", ""), spoken, before))
    return sentences


def said_by_guests() -> list[Sentence]:
    """Every text of guests.toml once."""
    texts = sorted({found for guest in guests() for act in guest.acts for found in act.texts()})
    numbers = {kind: count(1) for kind in GUEST_KINDS}
    return [Sentence(next(numbers[kind]), kind, "guest", "", text, "") for kind, text in texts]


def make_clip(sentence: Sentence, voice: str) -> dict[str, object]:
    """Speak `sentence`, write the clip, and return its line of the manifest."""
    pcm, phones = speak(sentence.text, voice)
    first, last = voiced_span(pcm)
    start, end = max(0, first - ms_to_samples(60)), min(pcm.size, last + ms_to_samples(120))
    file = Path(sentence.kind) / f"{sentence.number:03}-{voice}.opus"
    (FOLDER / file).parent.mkdir(parents=True, exist_ok=True)
    encode(levelled(pcm, first, last)[start:end], FOLDER / file)
    noise = NOISES[(3 * sentence.number + VOICES.index(voice)) % len(NOISES)]
    clip: dict[str, object] = {
        "id": f"{sentence.kind}-{sentence.number:03}-{voice}",
        "kind": sentence.kind,
        "voice": voice,
        "text": sentence.text,
        "intent": sentence.intent,
        "noise": "quiet" if sentence.kind in ("barge_in", *GUEST_KINDS) else noise,
        "file": file.as_posix(),
    }
    if sentence.before:
        cut = boundary(pcm, phones, len(phones_of(sentence.before, voice)))
        clip |= {"before": sentence.before, "cut_ms": round((cut - start) * 1000 / RATE)}
    if sentence.place:
        clip["place"] = sentence.place
    return clip


def speak(text: str, voice: str) -> tuple[Pcm, list[tuple[str, float]]]:
    """`text` as int16[n] at 16 kHz, and its phones with the second at which each ends."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "speech.wav"
        printed = flite("-voice", voice, "-psdur", "-t", text, "-o", str(file))
        with wave.open(str(file)) as sound:
            if sound.getframerate() != RATE:
                raise RuntimeError(f"voice {voice} speaks at {sound.getframerate()} Hz, expected {RATE}")
            pcm = np.frombuffer(sound.readframes(sound.getnframes()), np.int16)
    pairs = [item.split(":") for item in printed.split()]
    return pcm, [(name, float(end)) for name, end in pairs if name != "pau"]


def phones_of(text: str, voice: str) -> list[str]:
    """The phones of `text`, without pauses."""
    return [phone for phone in flite("-voice", voice, "-ps", "-t", text, "-o", "none").split() if phone != "pau"]


def flite(*arguments: str) -> str:
    """What `flite` printed."""
    return subprocess.run(["flite", *arguments], check=True, capture_output=True, text=True).stdout


def boundary(pcm: Pcm, phones: list[tuple[str, float]], count: int) -> int:
    """The sample after the first `count` phones, moved by up to 20 ms to where the voice is weakest."""
    nominal = round(phones[count - 1][1] * RATE)
    reach, half = ms_to_samples(20), ms_to_samples(2.5)
    candidates = range(nominal - reach, nominal + reach + 1, ms_to_samples(1))
    return min(candidates, key=lambda at: (dbfs(pcm[at - half : at + half]), abs(at - nominal)))


def voiced_span(pcm: Pcm) -> tuple[int, int]:
    """The samples between which `pcm` is voiced: frames of 10 ms above -45 dBFS."""
    levels = [dbfs(pcm[at : at + FRAME]) for at in range(0, pcm.size - FRAME + 1, FRAME)]
    voiced = [index for index, level in enumerate(levels) if level > VOICED_DBFS]
    return voiced[0] * FRAME, (voiced[-1] + 1) * FRAME


def levelled(pcm: Pcm, first: int, last: int) -> Pcm:
    """`pcm` scaled so that its voiced part stands at LEVEL_DBFS, without clipping."""
    gain = 10 ** ((LEVEL_DBFS - dbfs(pcm[first:last])) / 20)
    gain = min(gain, 32000 / float(np.abs(pcm.astype(np.int32)).max()))
    return np.round(pcm * gain).astype(np.int16)


def encode(pcm: Pcm, path: Path) -> None:
    """Write `pcm` (int16[n] at 16 kHz) as Ogg/Opus."""
    with av.open(str(path), "w", format="ogg") as container:
        stream = container.add_stream("libopus", rate=RATE, layout="mono", options={"application": "voip"})
        stream.bit_rate = BIT_RATE
        frame = av.AudioFrame.from_ndarray(pcm.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = RATE
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


if __name__ == "__main__":
    sys.exit(main())
