"""`voicepipe bench engines`: what a turn costs on this machine's device, with the engines of a configuration
(`--config`) or with random weights of true shapes.

Random weights take as long as trained ones, so that no model has to be fetched; the words that come out are noise. The
load is that of calls (`load.py`), the order of work that of production (`readings.py`). Where vLLM or faster-whisper
can be used they are what is measured; otherwise a stand-in in torch of the same shape, which is named as one.
"""
