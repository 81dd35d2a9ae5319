"""`dataclass`, `field` and `replace` of the standard library, for a program whose start is felt.

The standard library writes and compiles up to six functions for each class, and loads a parser of Python to do so: for
our classes that took longer than the analysis of a small artifact. Here nothing is compiled. Type checkers are shown
the originals, and what asks for more (`dataclasses.fields`, `asdict`, pydantic) is answered by the standard library,
loaded for it. Left out is what we do not use: inherited fields, `slots`, `kw_only`, `InitVar`, `__post_init__`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "replace"]

Class = type[Any]
#: What the standard library knows a dataclass, and what it takes, by.
_NOTES = ("__dataclass_fields__", "__dataclass_params__", "__signature__")


class _Made:
    """The default of a field that each object gets its own of."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def _field(*, default_factory: Callable[[], Any]) -> Any:
    return _Made(default_factory)


def _replace(record: Any, /, **changes: Any) -> Any:
    return type(record)(**{name: getattr(record, name) for name in record.__match_args__} | changes)


def _dataclass(cls: Class | None = None, /, *, frozen: bool = False, order: bool = False) -> Any:
    if cls is None:
        return lambda cls: _dataclass(cls, frozen=frozen, order=order)
    names = tuple(cls.__annotations__)
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    factories = {name: value.make for name, value in defaults.items() if isinstance(value, _Made)}
    for name in factories:
        delattr(cls, name)
        del defaults[name]
    attributes: dict[str, Any] = {
        "__match_args__": names,
        "__init__": _constructor(names, defaults, factories),
        "__repr__": _text,
        **_comparisons(attrgetter(*names, "__class__"), frozen=frozen, order=order),
        **({"__setattr__": _refuse, "__delattr__": _refuse} if frozen else {}),
        **{note: _Original(note, cls, defaults, factories, {"frozen": frozen, "order": order}) for note in _NOTES},
    }
    for name, value in attributes.items():
        setattr(cls, name, value)
    return cls


def _constructor(
    names: tuple[str, ...], defaults: dict[str, Any], factories: Mapping[str, Callable[[], Any]]
) -> Callable[..., None]:
    fields = frozenset(names)

    def construct(self: Any, /, *args: Any, **kwargs: Any) -> None:
        if args:
            given = len(args) + len(kwargs)
            kwargs.update(zip(names, args, strict=False))
            if len(kwargs) != given:
                raise TypeError(f"{type(self).__name__}: {given} values for some of {names}")
        if kwargs.keys() != fields:
            made = {name: make() for name, make in factories.items() if name not in kwargs}
            kwargs = defaults | made | kwargs
            if kwargs.keys() != fields:
                raise TypeError(f"{type(self).__name__}: values for {[*kwargs]}, the fields are {names}")
        self.__dict__.update(kwargs)

    return construct


def _comparisons(values: Callable[[Any], Any], *, frozen: bool, order: bool) -> dict[str, Any]:
    """Compare and hash by the fields and the class; `values` gets them all."""

    def equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def less(self: Any, other: Any) -> Any:
        return values(self) < values(other) if other.__class__ is self.__class__ else NotImplemented

    hashed = (lambda self: hash(values(self))) if frozen else None
    return {"__eq__": equal, "__hash__": hashed, **({"__lt__": less} if order else {})}


def _text(self: Any) -> str:
    fields = (f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({', '.join(fields)})"


def _refuse(self: Any, name: str, *_: Any) -> None:
    from dataclasses import FrozenInstanceError  # noqa: PLC0415 (see above)

    raise FrozenInstanceError(f"cannot change {name!r}: {type(self).__name__} is frozen")


class _Original:
    """What the standard library notes on a dataclass, made when somebody looks."""

    def __init__(
        self,
        note: str,
        cls: Class,
        defaults: Mapping[str, Any],
        factories: Mapping[str, Callable[[], Any]],
        how: Mapping[str, bool],
    ) -> None:
        self._note, self._cls, self._defaults, self._factories, self._how = note, cls, defaults, factories, how

    def __get__(self, _: Any, __: Class) -> Any:
        import dataclasses  # noqa: PLC0415 (this is what it costs)
        import inspect  # noqa: PLC0415

        cls = self._cls
        made = {name: dataclasses.field(default_factory=make) for name, make in self._factories.items()}
        body = {"__annotations__": cls.__annotations__, "__module__": cls.__module__, **self._defaults, **made}
        like: Any = dataclasses.dataclass(**self._how)(type(cls.__name__, (), body))
        for note in _NOTES[:2]:
            setattr(cls, note, getattr(like, note))
        cls.__signature__ = inspect.signature(like)
        return getattr(cls, self._note)


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    dataclass, field, replace = _dataclass, _field, _replace
