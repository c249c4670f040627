"""Engines of true shape in torch, with random weights: what a GPU does with many calls, before any weights are there.

`python -m tests.gpu_engines.standins OUT.json`. It needs torch, transformers and numpy, and this checkout, of which
nothing has to be installed. Every figure is a stand-in's.
"""
