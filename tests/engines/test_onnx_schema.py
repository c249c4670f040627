"""Graphs that we edit come out as the package `onnx` would have edited them."""

from pathlib import Path

import onnx
import pytest

from voicepipe.base.errors import EngineMissing
from voicepipe.engines import onnx_schema
from voicepipe.engines.vad.silero import for_many, model_path


def test_what_is_not_edited_stays() -> None:
    ours = onnx.load_from_string(onnx_schema.load(model_path()).SerializeToString())
    assert ours == onnx.load(str(model_path()))


def test_an_edited_graph_is_the_one_that_onnx_makes() -> None:
    theirs = onnx.load(str(model_path()))
    lstm = next(node for node in theirs.graph.node if node.op_type == "LSTM")
    before = next(node for node in theirs.graph.node if lstm.input[0] in node.output)
    before.attribute[0].ints[:] = [2, 0, 1]
    for value in (*theirs.graph.input, *theirs.graph.output):
        if value.name in ("h", "c", "hn", "cn"):
            value.type.tensor_type.shape.dim[1].dim_param = "streams"  # in place of dim_value
    assert onnx.load_from_string(for_many()) == theirs


def test_an_output_is_added_by_its_name() -> None:
    model = onnx_schema.load(model_path())
    model.graph.output.append(onnx_schema.output("inner"))
    theirs = onnx.load(str(model_path()))
    theirs.graph.output.append(onnx.ValueInfoProto(name="inner"))
    assert onnx.load_from_string(model.SerializeToString()) == theirs


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"<html>404</html>")
    for path in (broken, tmp_path / "missing.onnx"):
        with pytest.raises(EngineMissing, match=rf"{path.name} is no ONNX model"):
            onnx_schema.load(path)
