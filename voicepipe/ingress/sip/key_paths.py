"""One press that reaches us by two ways: as RTP event and as INFO, since some gateways send both. Pure."""

from collections import deque
from typing import Literal, NamedTuple

Path = Literal["rtp", "info"]
TOGETHER_S = 2.0
"""The second message of a press comes at most so much later: by RTP a key is told when it goes down, by INFO mostly
when it comes up, and then mostly with how long it was down, which is not counted. Longer would lose more of a phone
that tells one key by RTP and the same key, pressed again, by INFO."""


class _Pressed(NamedTuple):
    key: str
    path: Path
    when: float


class KeyPaths:
    """One call's. A press is told by the path that is faster; the same key by the other path, shortly after, is the
    same press. Each press has one message by each path at most: the same key by the same path is another press, so
    that none of two is lost."""

    def __init__(self) -> None:
        self._unmatched: deque[_Pressed] = deque(maxlen=40)
        """Those that have come by one path only."""

    def is_new_press(self, key: str, path: Path, now: float, held_s: float = 0.0) -> bool:
        """Whether a key that comes by `path` at the monotonic second `now` is a press that is not known yet; from then
        on it is. `held_s`: for so long the key was down by then."""
        for one in self._unmatched:
            if one.key == key and one.path != path and now - one.when <= TOGETHER_S + held_s:
                self._unmatched.remove(one)
                return False
        self._unmatched.append(_Pressed(key, path, now))
        return True
