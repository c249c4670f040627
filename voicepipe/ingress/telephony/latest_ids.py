"""Ids that came lately, in memory of a fixed size: what is kept for hours must not grow for hours."""

import numpy as np


class LatestIds:
    """The last `most` of them, by hashes of 64 bits, which Python salts for each process."""

    def __init__(self, most: int) -> None:
        self._hashes = np.zeros(most, np.int64)
        self._count = 0

    def add(self, one: str) -> None:
        self._hashes[self._count % self._hashes.size] = hash(one)
        self._count += 1

    def __contains__(self, one: str) -> bool:
        return bool((self._hashes[: self._count] == hash(one)).any())
