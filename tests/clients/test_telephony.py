"""Our media streams against Pipecat's serializers: what one side sends the other reads, and both send the same."""

import json
import subprocess
from typing import Any

import numpy as np
import pytest

from tests.clients.test_clients import PYTHON, ROOT
from tests.ingress.fake_pop import tone
from voicepipe.ingress.telephony.dialects import TELNYX, TWILIO, Dialect, SoundFormat, StreamMedia

PCMU = SoundFormat("pcmu", 8000)
STREAMS = {"twilio": "MZ1", "telnyx": "S1"}
PCM = tone(160, 8000)


def pipecat(kind: str, *lines: dict[str, Any]) -> list[Any]:
    """What Pipecat answers to each."""
    ended = subprocess.run(
        [PYTHON, "-m", "tests.clients.telephony", kind], cwd=ROOT, input="\n".join(map(json.dumps, lines)),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-3000:]
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.mark.parametrize("dialect", [TWILIO, TELNYX], ids=lambda dialect: dialect.kind)
def test_both_sides_say_the_same(dialect: Dialect) -> None:
    stream = STREAMS[dialect.kind]
    ours = json.loads(dialect.media(stream, PCMU.encode(PCM)))
    key = {"event": "dtmf", dialect.stream_id: stream, "dtmf": {"digit": "#"}}
    theirs, cleared, heard, marked, pressed = pipecat(
        dialect.kind,
        {"make": PCM.tolist()},
        {"interrupt": True},
        {"take": ours},
        {"take": json.loads(dialect.mark(stream, "1"))},
        {"take": key},
    )
    assert theirs == ours
    assert cleared == json.loads(dialect.clear(stream))
    assert np.array_equal(heard, PCMU.decode(PCMU.encode(PCM)))
    assert marked is None, "marks are none of Pipecat's business, and do it no harm"
    said = dialect.read(json.dumps(theirs))
    assert said and isinstance(said[1], StreamMedia) and said[1].payload == PCMU.encode(PCM)
    read = dialect.read(json.dumps(key))
    assert read and read[1] == (pressed,)
