"""Pipecat's serializers for Twilio and Telnyx, as the far end of ours.

`python -m tests.clients.telephony KIND` answers each line of JSON with another: {"make": [SAMPLE, ...]} and
{"interrupt": true} with the message that Pipecat sends, {"take": MESSAGE} with the samples or the key that it reads.
"""

import asyncio
import json
import sys
from typing import Any

from pipecat.frames.frames import InputAudioRawFrame, InputDTMFFrame, InterruptionFrame, OutputAudioRawFrame
from pipecat.serializers.base_serializer import FrameSerializer
from pipecat.serializers.telnyx import TelnyxFrameSerializer
from pipecat.serializers.twilio import TwilioFrameSerializer

RATE = 8000


def serializer(kind: str) -> FrameSerializer:
    """As Pipecat's users make one, at the rate of the wire."""
    if kind == "twilio":
        twilio = TwilioFrameSerializer.InputParams(auto_hang_up=False, sample_rate=RATE)
        made: FrameSerializer = TwilioFrameSerializer("MZ1", params=twilio)
    else:
        telnyx = TelnyxFrameSerializer.InputParams(auto_hang_up=False, sample_rate=RATE)
        made = TelnyxFrameSerializer("S1", "PCMU", "PCMU", params=telnyx)
    made._sample_rate = RATE
    return made


async def answered(pipecat: FrameSerializer, asked: dict[str, Any]) -> Any:
    """One line."""
    if "make" in asked:
        pcm = b"".join(sample.to_bytes(2, "little", signed=True) for sample in asked["make"])
        frame = OutputAudioRawFrame(audio=pcm, sample_rate=RATE, num_channels=1)
        return json.loads(await pipecat.serialize(frame) or "null")
    if "interrupt" in asked:
        return json.loads(await pipecat.serialize(InterruptionFrame()) or "null")
    match await pipecat.deserialize(json.dumps(asked["take"])):
        case InputAudioRawFrame() as frame:
            data = frame.audio
            return [int.from_bytes(data[at : at + 2], "little", signed=True) for at in range(0, len(data), 2)]
        case InputDTMFFrame() as frame:
            return frame.button.value
    return None


async def main(kind: str) -> None:
    """Until there are no more lines."""
    pipecat = serializer(kind)
    for line in sys.stdin:
        print(json.dumps(await answered(pipecat, json.loads(line))), flush=True)


asyncio.run(main(*sys.argv[1:]))
