"""The log of a command that serves."""

import logging

LOG_LEVELS = ("debug", "info", "warning", "error")


def log_from(level: str) -> None:
    """Log to standard error, a line with its time for each event of `level` or graver; of libraries, from warnings."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("voicepipe").setLevel(level.upper())
