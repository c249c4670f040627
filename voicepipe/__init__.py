"""voicepipe: answers calls with a voice AI inside 300 ms."""

__version__ = "0.1.0"
