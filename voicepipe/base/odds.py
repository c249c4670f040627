"""Probabilities and their log-odds, in which evidence adds up. Pure."""

import math


def log_odds(probability: float, nearest: float = 1e-4) -> float:
    """Natural logarithm of p / (1 - p). `probability`, in 0..1, is taken no nearer to 0 or 1 than `nearest`."""
    p = max(nearest, min(1 - nearest, probability))
    return math.log(p / (1 - p))


def probability(log_odds: float) -> float:
    """The probability (0..1) that has these log-odds."""
    return 1 / (1 + math.exp(-log_odds))
