"""What callers notice when an engine, the disk, the clock or the network fails in the middle of their turns.

`python -m tests.chaos` (`make chaos-pop`) starts a PoP and a language model's server as processes of their own on
loopback, places calls, and breaks one thing at a time: `faults.py` lists them. A fault is a file in a folder that both
processes look at (`switches.py`); killing and stopping is done by signals. The real engines are espeak-ng, Whisper and
`openai`.
"""
