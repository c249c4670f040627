"""ONNX models as messages of protobuf, to edit a graph before onnxruntime loads it.

Of ONNX's schema this knows the fields that we edit or look at. Protobuf keeps what it does not know, so a model comes
out whole. The package `onnx` would do the same for 30 MB more on every host.

Field numbers: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from voicepipe.base.errors import EngineMissing

_FIELD = descriptor_pb2.FieldDescriptorProto
_TEXT, _INT = _FIELD.TYPE_STRING, _FIELD.TYPE_INT64
_MANY = True

_SCHEMA: dict[str, dict[str, tuple[int, int | str, bool]]] = {
    "Model": {"graph": (7, "Graph", not _MANY)},
    "Graph": {
        "node": (1, "Node", _MANY),
        "input": (11, "Value", _MANY),
        "output": (12, "Value", _MANY),
    },
    "Node": {
        "input": (1, _TEXT, _MANY),
        "output": (2, _TEXT, _MANY),
        "op_type": (4, _TEXT, not _MANY),
        "attribute": (5, "Attribute", _MANY),
    },
    "Attribute": {"name": (1, _TEXT, not _MANY), "ints": (8, _INT, _MANY)},
    "Value": {"name": (1, _TEXT, not _MANY), "type": (2, "Type", not _MANY)},
    "Type": {"tensor_type": (1, "Tensor", not _MANY)},
    "Tensor": {"shape": (2, "Shape", not _MANY)},
    "Shape": {"dim": (1, "Dimension", _MANY)},
    "Dimension": {"dim_value": (1, _INT, not _MANY), "dim_param": (2, _TEXT, not _MANY)},
}
"""Message -> field -> (number, type or message, whether it is repeated). ONNX writes "ModelProto" for "Model"."""
_ONE_OF = {"Dimension": "value"}
"""Messages of whose fields one at most is set: ONNX's `oneof`."""


def load(path: Path) -> Any:
    """The model in a file: an ONNX `ModelProto` with the fields of `_SCHEMA`, to be edited in place and given to
    onnxruntime by `SerializeToString`. Raises EngineMissing: the file is no such model."""
    try:
        return _MODEL.FromString(path.read_bytes())
    except (OSError, DecodeError) as error:
        raise EngineMissing(f"{path} is no ONNX model ({error}): reinstall the package that brings it") from None


def output(name: str) -> Any:
    """An output of a graph, a `ValueInfoProto`, whose type onnxruntime infers."""
    return _VALUE(name=name)


def _message_types() -> Any:
    """A pool with the messages of `_SCHEMA`."""
    file = descriptor_pb2.FileDescriptorProto(name="voicepipe/onnx.proto", package="voicepipe.onnx", syntax="proto2")
    for name, fields in _SCHEMA.items():
        message = file.message_type.add(name=name)
        if name in _ONE_OF:
            message.oneof_decl.add(name=_ONE_OF[name])
        for field, (number, kind, many) in fields.items():
            added = message.field.add(name=field, number=number)
            added.label = _FIELD.LABEL_REPEATED if many else _FIELD.LABEL_OPTIONAL
            if isinstance(kind, str):
                added.type, added.type_name = _FIELD.TYPE_MESSAGE, f".voicepipe.onnx.{kind}"
            else:
                added.type = kind  # type: ignore[assignment]  # the stubs know the numbers by an enum of their own
            if name in _ONE_OF:
                added.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


_POOL = _message_types()
_MODEL = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("voicepipe.onnx.Model"))
_VALUE = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("voicepipe.onnx.Value"))
