"""Values of the eleven basic types [MON 2.3], and arguments from values of Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Tuple, Union

from . import _xdr
from ._constants import BasicType
from ._xdr import Reader
from .errors import ProtocolError

MAX_NAME_BYTES = 255
_MAX_NESTING = 4
_MAX_VOID_ITEMS = 65_536

#: The fewest bytes that one item of an array takes.
_MIN_ITEM_BYTES = {
    BasicType.INT64: 8,
    BasicType.UINT64: 8,
    BasicType.DOUBLE: 8,
    BasicType.ARRAY: 8,
    BasicType.VOID: 0,
}

#: A value as Python has it: a REC is a dict, an ARRAY a list, VOID is None.
Plain = Union[int, float, bool, str, bytes, None, List["Plain"], Dict[str, "Plain"]]

ArgumentValue = Union[str, int, float, bool, bytes]
#: Arguments of a metric or control, by name. The server converts them to the declared types if nothing is lost by that.
Arguments = Mapping[str, ArgumentValue]


@dataclass(frozen=True)
class Value:
    """A value with its type.

    ===================  ======================================================================
    type                 value
    ===================  ======================================================================
    INT32 to UINT64      int
    DOUBLE               float
    BOOLEAN              bool
    STRING               str, or bytes if they are not UTF-8
    OPAQUE               bytes
    REC                  a tuple of `Field` in their order
    ARRAY                `Array`
    VOID                 None: no measurement could be had
    ===================  ======================================================================
    """

    type: BasicType
    value: Union[int, float, bool, str, bytes, None, Tuple[Field, ...], Array]

    @property
    def plain(self) -> Plain:
        """The value as Python has it. Text that is not UTF-8 is shown with U+FFFD."""
        if isinstance(self.value, Array):
            return [item.plain for item in self.value.items]
        if isinstance(self.value, tuple):
            return {field.name: field.value.plain for field in self.value}
        if self.type is BasicType.STRING and isinstance(self.value, bytes):
            return self.value.decode(errors="replace")
        return self.value


@dataclass(frozen=True)
class Field:
    """A named value in a REC."""

    name: str
    value: Value


@dataclass(frozen=True)
class Array:
    """The items of an ARRAY, all of type `element`."""

    element: BasicType
    items: Tuple[Value, ...]


#: The value for a missing measurement.
VOID = Value(BasicType.VOID, None)


def read_typed(reader: Reader) -> Value:
    """Reads `uint32 type, value`. Raises `ProtocolError`."""
    return _read(reader, read_type(reader), 0)


def read_type(reader: Reader) -> BasicType:
    number = reader.uint32()
    try:
        return BasicType(number)
    except ValueError:
        raise ProtocolError(f"no basic type has the number {number}") from None


def read_name(reader: Reader) -> str:
    name = reader.string(MAX_NAME_BYTES)
    if name == "" or any(character < " " for character in name):
        raise ProtocolError("a name is empty or has a control character")
    return name


def read_count(reader: Reader, min_bytes: int) -> int:
    """Reads a count, and refuses one that cannot fit into what follows."""
    count = reader.uint32()
    most = _MAX_VOID_ITEMS - reader.empty_items if min_bytes == 0 else reader.remaining // min_bytes
    if count > most:
        raise ProtocolError(f"a count of {count} where at most {most} fit")
    if min_bytes == 0:
        reader.empty_items += count
    return count


_SIMPLE: Dict[BasicType, Callable[[Reader], Union[int, float, bool, bytes]]] = {
    BasicType.INT32: Reader.int32,
    BasicType.UINT32: Reader.uint32,
    BasicType.INT64: Reader.int64,
    BasicType.UINT64: Reader.uint64,
    BasicType.DOUBLE: Reader.double,
    BasicType.BOOLEAN: Reader.boolean,
    BasicType.OPAQUE: Reader.opaque,
}


def _read(reader: Reader, type: BasicType, depth: int) -> Value:
    """`depth`: how many RECs and ARRAYs are around it."""
    simple = _SIMPLE.get(type)
    if simple is not None:
        return Value(type, simple(reader))
    if type is BasicType.STRING:
        return Value(type, _text(reader.opaque()))
    if type is BasicType.VOID:
        return VOID
    if depth == _MAX_NESTING:
        raise ProtocolError(f"nested deeper than {_MAX_NESTING}")
    if type is BasicType.REC:
        fields = range(read_count(reader, 12))
        return Value(type, tuple(Field(read_name(reader), _read(reader, read_type(reader), depth + 1)) for _ in fields))
    element = read_type(reader)
    items = range(read_count(reader, _MIN_ITEM_BYTES.get(element, 4)))
    return Value(type, Array(element, tuple(_read(reader, element, depth + 1) for _ in items)))


def _text(data: bytes) -> Union[str, bytes]:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def records_of(value: Value) -> Optional[List[Tuple[Field, ...]]]:
    """The records of a list; None for any other value."""
    if not isinstance(value.value, Array) or value.value.element is not BasicType.REC:
        return None
    return [item.value for item in value.value.items if isinstance(item.value, tuple)]


def text_of(record: Tuple[Field, ...], name: str) -> str:
    """The text of a field of a record; empty if there is none."""
    return next((str(field.value.plain) for field in record if field.name == name), "")


def texts_of(record: Optional[Value]) -> Dict[str, str]:
    """The texts of a record by the names of its fields."""
    fields = record.value if record is not None and isinstance(record.value, tuple) else ()
    return {field.name: str(field.value.plain) for field in fields}


def numbers_of(value: Optional[Value]) -> List[Union[int, float]]:
    """The numbers of an array; none of any other value."""
    items = value.value.items if value is not None and isinstance(value.value, Array) else ()
    return [item.value for item in items if isinstance(item.value, (int, float))]


def write_arguments(arguments: Arguments) -> bytes:
    """An argument list [MON 2.4].

    Raises `TypeError` for a value of another type, and `OverflowError` for an integer of more than 64 bits.
    """
    written = [_xdr.uint32(len(arguments))]
    for name, value in arguments.items():
        written += (_xdr.string(name), _argument(name, value))
    return b"".join(written)


def _argument(name: str, value: ArgumentValue) -> bytes:
    if isinstance(value, bool):
        return _xdr.uint32(BasicType.BOOLEAN) + _xdr.uint32(value)
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return _xdr.uint32(BasicType.INT64) + _xdr.int64(value)
        if 0 < value < 2**64:
            return _xdr.uint32(BasicType.UINT64) + _xdr.uint64(value)
        raise OverflowError(f"argument `{name}`: the integer does not fit into 64 bits")
    if isinstance(value, float):
        return _xdr.uint32(BasicType.DOUBLE) + _xdr.double(value)
    if isinstance(value, str):
        return _xdr.uint32(BasicType.STRING) + _xdr.string(value)
    if isinstance(value, bytes):
        return _xdr.uint32(BasicType.OPAQUE) + _xdr.opaque(value)
    raise TypeError(f"argument `{name}`: str, int, float, bool or bytes, not {type(value).__name__}")
