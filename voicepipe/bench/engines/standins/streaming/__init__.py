"""One measurement: does a streaming recogniser of true shape hold many calls beside a language model, on one GPU?

With `--voice` the replies are spoken, too. Weights and sound are random: every figure is a stand-in's. Needs torch,
transformers, numpy, rich and uvloop, and takes the stand-ins for the language model and the voice from the package
around it.
"""
