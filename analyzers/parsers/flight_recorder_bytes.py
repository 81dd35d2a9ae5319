"""From the bytes of a dump to plain containers, whatever the bytes are.

A pickle is a program, and dumps come from whoever opened the pull request. So no unpickler runs here: the standard
library decodes the opcodes (`pickletools.genops` executes nothing), and this module builds lists, dicts, tuples, text
and numbers from the few that PyTorch writes. All others (GLOBAL, REDUCE, BUILD, persistent ids, ...) are unknown to it.

`pickle.Unpickler` with a refusing `find_class` would not do: a memo index of four billion makes it allocate gigabytes,
and a deep tuple as a key overflows the C stack in `hash`.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable

from pydantic_core import from_json

from analyzers.reading.whole_text import whole

#: A dump of 20,000 entries with 60 frames each has about 6 million opcodes.
MAX_OPCODES = 20_000_000
PICKLE_MAGIC = b"\x80"


class MalformedError(Exception):
    """The bytes are no dump; the message is a clause for people ("it ...")."""


def parse(data: bytes) -> object:
    """Return the plain value that a pickled or JSON dump holds.

    Raises:
        MalformedError: cut off, hostile, or neither form.
    """
    if data.startswith(PICKLE_MAGIC):
        return _unpickle(data)
    if not data.lstrip()[:1] == b"{":
        raise MalformedError("is neither a pickle nor JSON")
    try:
        return from_json(data)
    except ValueError as error:
        raise MalformedError(f"is no valid JSON ({error})") from error


def _unpickle(data: bytes) -> object:
    machine = _Machine()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if opcode.name == "STOP":
                return machine.result()
            if count > MAX_OPCODES:
                raise MalformedError("holds more values than any dump has")
            machine.step(opcode.name, argument)
    except (ValueError, IndexError, KeyError) as error:
        # genops: unknown opcode, cut argument; the machine: empty stack, unset memo slot
        raise MalformedError(f"is cut off or damaged ({error})") from error
    raise MalformedError("is cut off")


class _Machine:
    """The stack, marks and memo of the pickle protocol, for plain data only."""

    def __init__(self) -> None:
        self._stack: list[object] = []
        self._marks: list[int] = []
        self._memo: dict[int, object] = {}

    def step(self, name: str, argument: object) -> None:
        if name in _SCALARS:
            self._stack.append(whole(argument) if isinstance(argument, str) else argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _ACTIONS:
            _ACTIONS[name](self, argument)
        elif name not in _IGNORED:
            raise MalformedError(f"asks for {name}, which no dump needs and could run code")

    def result(self) -> object:
        if len(self._stack) != 1:
            raise MalformedError("does not end in one value")
        return self._stack[0]

    def mark(self, _: object) -> None:
        self._marks.append(len(self._stack))

    def empty_list(self, _: object) -> None:
        self._stack.append([])

    def empty_dict(self, _: object) -> None:
        self._stack.append({})

    def put(self, slot: object) -> None:
        self._memo[_number(slot)] = self._stack[-1]

    def memoize(self, _: object) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def get(self, slot: object) -> None:
        self._stack.append(self._memo[_number(slot)])

    def append(self, _: object) -> None:
        item = self._stack.pop()
        self._extend([item])

    def appends(self, _: object) -> None:
        self._extend(self._since_mark())

    def set_item(self, _: object) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._update([key, value])

    def set_items(self, _: object) -> None:
        self._update(self._since_mark())

    def tuple_of_marked(self, _: object) -> None:
        self._stack.append(tuple(self._since_mark()))

    def tuple_of(self, size: int) -> None:
        if len(self._stack) < size:
            raise MalformedError("is cut off or damaged")
        items = tuple(self._stack[len(self._stack) - size :])
        del self._stack[len(self._stack) - size :]
        self._stack.append(items)

    def _since_mark(self) -> list[object]:
        start = self._marks.pop()
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def _extend(self, items: list[object]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise MalformedError("appends to something that is no list")
        target.extend(items)

    def _update(self, items: list[object]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise MalformedError("sets items of something that is no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str | int):  # the hash of a deep tuple overflows the C stack
                raise MalformedError("has a key that is neither text nor a number")
            target[key] = value


def _number(slot: object) -> int:
    if not isinstance(slot, int):
        raise MalformedError("has a memo slot that is no number")
    return slot


_IGNORED = {"PROTO", "FRAME"}
_SCALARS = {
    "BINFLOAT",
    "BININT",
    "BININT1",
    "BININT2",
    "BINUNICODE",
    "BINUNICODE8",
    "LONG1",
    "LONG4",
    "SHORT_BINUNICODE",
}
_CONSTANTS: dict[str, object] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_ACTIONS: dict[str, Callable[[_Machine, object], None]] = {
    "MARK": _Machine.mark,
    "EMPTY_LIST": _Machine.empty_list,
    "EMPTY_DICT": _Machine.empty_dict,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "MEMOIZE": _Machine.memoize,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "TUPLE": _Machine.tuple_of_marked,
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
}
