# SPDX-License-Identifier: Apache-2.0
"""libkiln through ctypes, made from the library's own tables of ops.

No op's fields stand here: names, types and offsets are read from `kiln_op_info_at`. What is
mirrored are the few structs of include/kiln that describe them.
"""

import ctypes
from ctypes import POINTER, Structure, c_bool, c_char, c_char_p, c_int, c_int32, c_int64
from ctypes import c_size_t, c_void_p
from typing import NamedTuple

SHAPE_FIELDS = 16
INPUT, OUTPUT, NUMBER, COUNT, EXTENT = range(5)  # enum kiln_arg_kind
COUNT_VALUE, COUNT_DEVICE = 1, 2  # enum kiln_count_kind
REQUESTS, REQUEST_BOUNDS = 4, 5  # of enum kiln_extent: bounds are one more than requests
DTYPES = ("u8", "i32", "i64")  # enum kiln_dtype


class Shape(Structure):
    _fields_ = [("fields", c_int64 * SHAPE_FIELDS)]


class Error(Structure):
    _fields_ = [("status", c_int), ("origin", c_int), ("native_code", c_int32),
                ("message", c_char * 1024)]


class Count(Structure):
    _fields_ = [("address", c_void_p), ("value", c_int32), ("kind", c_int32)]


class ShapeField(Structure):
    _fields_ = [("name", c_char_p), ("kind", c_int), ("default_kind", c_int),
                ("default_value", c_int64), ("min", c_int64), ("max", c_int64),
                ("choices", POINTER(c_char_p))]


class Arg(Structure):
    _fields_ = [("name", c_char_p), ("kind", c_int), ("optional", c_bool),
                ("may_be_null", c_bool), ("dtype", c_int), ("extent", c_int),
                ("offset", c_size_t),
                ("width", ctypes.CFUNCTYPE(c_int64, POINTER(Shape))),
                ("stride_field", c_int)]


class OpInfo(Structure):
    _fields_ = [("op", c_int), ("name", c_char_p), ("supported", c_bool),
                ("fields", POINTER(ShapeField)), ("n_fields", c_size_t),
                ("args", POINTER(Arg)), ("n_args", c_size_t), ("args_bytes", c_size_t)]


class KilnError(Exception):
    """A call failed; the text is kiln's own message."""


class Array(NamedTuple):
    """A host or device array as a call takes it."""

    address: int
    rows: int


class Layout(NamedTuple):
    """How an array of some shape lies in memory; a vector has one column."""

    dtype: str
    width: int
    stride: int
    is_matrix: bool


class Op:
    """One op: its table, shapes with defaults, and its args struct as bytes."""

    def __init__(self, library, info):
        self._library = library
        self.number = info.op
        self.name = info.name.decode()
        self.supported = info.supported
        self.fields = [info.fields[i] for i in range(info.n_fields)]
        self.args = {info.args[i].name.decode(): info.args[i] for i in range(info.n_args)}
        self.args_bytes = info.args_bytes

    def shape(self, **given):
        """A shape: the given fields, the defaults of the others."""
        shape = Shape()
        mask = 0
        for i, field in enumerate(self.fields):
            name = field.name.decode()
            if name in given:
                shape.fields[i] = number_of(field, given.pop(name))
                mask |= 1 << i
        if given:
            raise KilnError(f"{self.name} has no shape field {sorted(given)}")
        self._library.call("kiln_shape_defaults", self.number, mask, ctypes.byref(shape))
        return shape

    def values(self, shape):
        """The fields of a shape by name."""
        return {f.name.decode(): shape.fields[i] for i, f in enumerate(self.fields)}

    def layout(self, shape, name):
        arg = self.args[name]
        if not arg.width:
            return Layout(DTYPES[arg.dtype], 1, 1, False)
        width = arg.width(ctypes.byref(shape))
        stride = shape.fields[arg.stride_field] if arg.stride_field >= 0 else width
        return Layout(DTYPES[arg.dtype], width, stride, True)

    def pack(self, **values):
        """The args struct: an Array for an array and for a count in memory, an int for a
        number and for a count by value. What is optional and not named stays zero; numbers
        that count rows follow from the arrays."""
        unknown = sorted(set(values) - set(self.args))
        if unknown:
            raise KilnError(f"{self.name} has no argument {unknown}")
        packed = ctypes.create_string_buffer(self.args_bytes)
        for name, arg in self.args.items():
            field = self._field(arg, values, values.get(name))
            if field is not None:
                ctypes.memmove(ctypes.addressof(packed) + arg.offset, ctypes.byref(field),
                               ctypes.sizeof(field))
        return packed

    def _field(self, arg, values, value):
        follows = arg.kind in (NUMBER, EXTENT) or (arg.kind == COUNT and not arg.optional)
        if value is None and follows:
            value = self._rows(arg.extent, values)
        if value is None:
            return None
        if arg.kind in (INPUT, OUTPUT):
            return c_void_p(value.address)
        if arg.kind in (NUMBER, EXTENT):
            return c_int32(value)
        if isinstance(value, Array):
            return Count(value.address, 0, COUNT_DEVICE)
        return Count(None, value, COUNT_VALUE)

    def _rows(self, extent, values):
        for name, value in values.items():
            arg = self.args[name]
            if not isinstance(value, Array) or arg.kind not in (INPUT, OUTPUT):
                continue
            if arg.extent == extent:
                return value.rows
            if arg.extent == REQUEST_BOUNDS and extent == REQUESTS:
                return max(value.rows - 1, 0)
        return 0


def number_of(field, value):
    """A shape field's number; a choice may be named."""
    if not isinstance(value, str):
        return int(value)
    i = 0
    while field.choices and field.choices[i]:
        if field.choices[i].decode() == value:
            return i
        i += 1
    raise KilnError(f"{field.name.decode()} = {value!r}: not a choice")


class Library:
    """A loaded libkiln: its ops by name, and a kiln once something is prepared."""

    def __init__(self, path):
        self._lib = ctypes.CDLL(str(path))
        self._lib.kiln_op_info_at.restype = POINTER(OpInfo)
        self._lib.kiln_op_info_at.argtypes = [c_size_t]
        self._lib.kiln_status_name.restype = c_char_p
        self._lib.kiln_destroy.restype = None
        self._kiln = c_void_p()
        self.ops = {}
        while info := self._lib.kiln_op_info_at(len(self.ops)):
            op = Op(self, info.contents)
            self.ops[op.name] = op

    def call(self, function, *args):
        """Call what takes a struct kiln_error last; a failure is raised."""
        err = Error()
        status = getattr(self._lib, function)(*args, ctypes.byref(err))
        if status != 0:
            name = self._lib.kiln_status_name(status).decode()
            raise KilnError(f"{function}: {name}: {err.message.decode(errors='replace')}")

    def reference(self, op, shape, packed):
        self.call("kiln_reference", op.number, ctypes.byref(shape), packed)

    def prepare(self, op, shape, stream=None):
        """The kernel of a shape, for the device of the current context."""
        if not self._kiln:
            self.call("kiln_create", None, ctypes.byref(self._kiln))
        kernel = c_void_p()
        self.call("kiln_prepare", self._kiln, op.number, ctypes.byref(shape), c_void_p(stream),
                  ctypes.byref(kernel))
        return kernel

    def launch(self, kernel, packed, stream):
        self.call("kiln_launch", kernel, packed, c_void_p(stream))

    def close(self):
        """Unload every kernel; no launch may be under way."""
        self._lib.kiln_destroy(ctypes.byref(self._kiln))
