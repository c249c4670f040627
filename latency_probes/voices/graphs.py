"""A part of an ONNX graph as a session of its own. One thread, so that sums are always in the same order."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from onnx.utils import Extractor


class Graph:
    """A network's file, whose values between two nodes can be asked for, and given in place of what the nodes make."""

    def __init__(self, path: Path, given: Mapping[str, Sequence[int | str]] | None = None) -> None:
        """`given`: float values that become inputs in place of the nodes that make them, with their shapes."""
        model = onnx.load(path)
        for name, shape in (given or {}).items():
            (maker,) = (node for node in model.graph.node if name in node.output)
            model.graph.node.remove(maker)
            model.graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
        self._extractor = Extractor(onnx.shape_inference.infer_shapes(model))

    def part(self, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
        """A session that makes `outputs` of `inputs`."""
        options = onnxruntime.SessionOptions()
        options.inter_op_num_threads = options.intra_op_num_threads = 1
        options.log_severity_level = 3
        part = self._extractor.extract_model([*inputs], [*outputs])
        return onnxruntime.InferenceSession(part.SerializeToString(), options, providers=["CPUExecutionProvider"])
