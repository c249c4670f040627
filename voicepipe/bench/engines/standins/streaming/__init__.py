"""One measurement: does a streaming recogniser of true shape hold many calls beside a language model, on one GPU?

Weights and sound are random: every figure is a stand-in's. Needs torch, transformers, numpy, rich and uvloop,
and takes the stand-in for the language model from the package around it.
"""
