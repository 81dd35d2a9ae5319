"""Our quick dataclasses against those of the standard library: the same calls, the same answers."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from analyzers import records


@records.dataclass(frozen=True)
class Point:
    """With defaults of both kinds."""

    x: int
    y: int = 2
    tags: list[str] = records.field(default_factory=list)

    @property
    def total(self) -> int:
        return self.x + self.y


@dataclasses.dataclass(frozen=True)
class OriginalPoint:
    x: int
    y: int = 2
    tags: list[str] = dataclasses.field(default_factory=list)


@records.dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int = 0


@records.dataclass
class Basket:
    """One that may be changed."""

    count: int = 0


@records.dataclass(frozen=True)
class Other:
    x: int
    y: int
    tags: list[str]


CALLS: dict[str, Callable[[Any], Any]] = {
    "nothing given": lambda cls: cls(),
    "by place": lambda cls: cls(1, 3),
    "by name": lambda cls: cls(y=3, x=1),
    "mixed": lambda cls: cls(1, tags=["a"]),
    "too many": lambda cls: cls(1, 2, [], 4),
    "twice": lambda cls: cls(1, x=1),
    "unknown": lambda cls: cls(1, z=1),
    "unknown for missing": lambda cls: cls(z=1, y=2),
    "text": lambda cls: repr(cls(1, tags=["a"])).removeprefix("Original"),
    "replaced": lambda cls: dataclasses.replace(cls(1), y=4),
    "plain": lambda cls: dataclasses.asdict(cls(1, tags=["a"])),
    "names": lambda cls: [field.name for field in dataclasses.fields(cls)],
    "types": lambda cls: [field.type for field in dataclasses.fields(cls)],
    "called with": lambda cls: str(inspect.signature(cls)),
    "set": lambda cls: setattr(cls(1), "x", 2),
    "deleted": lambda cls: delattr(cls(1), "x"),
    "pattern": lambda cls: cls.__match_args__,
    "copied": lambda cls: pickle.loads(pickle.dumps(cls(1, tags=["b"]))),
    "validated": lambda cls: TypeAdapter(cls).validate_json('{"x": 1, "tags": ["c"]}'),
    "refused": lambda cls: TypeAdapter(cls).validate_python({"y": 1}),
    "dumped": lambda cls: TypeAdapter(cls).dump_json(cls(1)),
}


def outcome(call: Callable[[Any], Any], cls: type) -> Any:
    try:
        got = call(cls)
    except (TypeError, AttributeError, ValueError) as why:
        return type(why)
    return (got.x, got.y, got.tags) if isinstance(got, Point | OriginalPoint) else got


@pytest.mark.parametrize("name", CALLS)
def test_the_same_call_has_the_same_outcome(name: str) -> None:
    assert outcome(CALLS[name], Point) == outcome(CALLS[name], OriginalPoint)


def test_objects_are_equal_by_class_and_fields() -> None:
    assert Point(1) == Point(1, 2, [])
    assert Point(1) != Point(2)
    assert Point(1, 2, []) != Other(1, 2, [])
    assert hash(Version(1)) == hash(Version(1, 0))
    assert {Version(1), Version(1, 0), Version(2)} == {Version(2), Version(1)}
    with pytest.raises(TypeError, match="unhashable"):
        hash(Basket())


def test_order_is_that_of_the_fields() -> None:
    assert sorted([Version(2), Version(1, 5), Version(1)]) == [Version(1), Version(1, 5), Version(2)]
    with pytest.raises(TypeError):
        sorted([Point(1), Point(2)])  # type: ignore[type-var]


def test_a_changeable_one_can_be_changed() -> None:
    one, other = Basket(), Basket()
    one.count += 1
    assert (one.count, other.count) == (1, 0)


def test_defaults_are_not_shared() -> None:
    Point(1).tags.append("mine")
    assert Point(1).tags == []


def test_a_copy_differs_in_what_was_named() -> None:
    point = Point(1, 2, ["kept"])
    assert records.replace(point, x=5) == Point(5, 2, ["kept"])
    assert records.replace(point).total == 3
    with pytest.raises(TypeError):
        records.replace(point, z=1)  # type: ignore[call-arg]
