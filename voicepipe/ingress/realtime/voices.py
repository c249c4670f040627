"""The voice for a client that asks for one. Stock clients send OpenAI's names, which no engine here has: such a name
changes nothing, and the agent's voice goes on speaking."""

import logging

import msgspec

from voicepipe.call_api import CallControl
from voicepipe.ingress.realtime.session import Session

logger = logging.getLogger(__name__)
SHOWN = 64
"""Characters of an unknown name that the log shows."""


class AskedVoices:
    """The voices that one call's clients ask for. Unknown ones are logged, in one line."""

    def __init__(self, call: CallControl) -> None:
        self._call = call
        self._logged = False

    def knows(self, voice: str) -> bool:
        """Whether there is a voice of this name. Empty is the default, which there always is."""
        speaks = self._call.voice_for(voice)
        if voice in ("", speaks):
            return True
        if not self._logged:
            self._logged = True
            logger.info("%s: a client asks for the voice %r, which is not here, so the voice stays as it is "
                        "(GET /v1/voices lists those that are)", self._call.id, voice[:SHOWN])  # fmt: skip
        return False

    def echoed(self, asked: Session, before: str) -> Session:
        """`asked`; a client that sends back the voice it was shown asks for no other than the one `before`."""
        return with_voice(asked, before) if asked.audio.output.voice == self._call.voice_for(before) else asked

    def known(self, asked: Session, before: str) -> Session:
        """`asked`, with the voice of `before` where there is no voice of that name."""
        voice = asked.audio.output.voice
        return asked if voice == before or self.knows(voice) else with_voice(asked, before)

    def in_force(self, session: Session) -> str:
        """The name of the voice that speaks."""
        return self._call.voice_for(session.audio.output.voice)


def with_voice(session: Session, voice: str) -> Session:
    """The session with another voice."""
    output = msgspec.structs.replace(session.audio.output, voice=voice)
    return msgspec.structs.replace(session, audio=msgspec.structs.replace(session.audio, output=output))
