"""The dump as PyTorch wrote it, checked: the edge at which foreign data becomes `Dump`.

Between versions 2.0 and 2.10 keys were added, so all but the few that matching needs have defaults. In the JSON form
the numbers of `pg_status` are text and an empty list of entries is left out.

Source: torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (dump_dict, dump_json, getPgConfig, getPgStatus).
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from analyzers.parsers.flight_recorder_bytes import MalformedError
from analyzers.parsers.flight_recorder_model import Dump, Entry, Frame, Group, Progress, Sizes

#: Shared lists make a small pickle unfold into a huge one, so what is copied out is counted.
MAX_ENTRIES, MAX_PARTS, MAX_MEMBERS = 200_000, 8_000_000, 4_000_000
MAX_FRAMES = 64

Count = Annotated[int, Field(ge=-1, le=2**62)]
Text = Annotated[str, Field(max_length=4096)]
Shape = Annotated[tuple[Count, ...], Field(max_length=64)]
Shapes = Annotated[tuple[Shape, ...], Field(max_length=8192)]
Dtypes = Annotated[tuple[Text, ...], Field(max_length=8192)]


def _pair(value: object) -> object:
    """Before descriptions were recorded a group was its name alone."""
    return (value, "") if isinstance(value, str) else value


def _ranks(value: object) -> object:
    """A group's members are written as text: "[0, 1]"."""
    return [int(number) for number in re.findall(r"\d{1,9}", value)] if isinstance(value, str) else value


def _limited_frames(value: object) -> object:
    return value[:MAX_FRAMES] if isinstance(value, list | tuple) else value


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Frame(_Part):
    filename: Text = ""
    line: Count = 0
    name: Text = ""


class _Group(_Part):
    name: Text = ""
    desc: Text = ""
    ranks: Annotated[tuple[Count, ...], Field(max_length=1_000_000), BeforeValidator(_ranks)] = ()


class _Status(_Part):
    last_enqueued_collective: Count = -1
    last_completed_collective: Count = -1


class _Entry(_Part):
    record_id: Count = 0
    pg_id: Count = 0
    process_group: Annotated[tuple[Text, Text], BeforeValidator(_pair)]
    collective_seq_id: Count = Field(validation_alias=AliasChoices("collective_seq_id", "seq_id"))
    p2p_seq_id: Count = 0
    op_id: Count = 0
    profiling_name: Text
    input_sizes: Shapes = ()
    output_sizes: Shapes = ()
    input_dtypes: Dtypes = ()
    output_dtypes: Dtypes = ()
    state: Text = "scheduled"
    time_created_ns: Count = 0
    is_p2p: bool | None = None
    frames: Annotated[tuple[_Frame, ...], BeforeValidator(_limited_frames)] = ()

    @property
    def parts(self) -> int:
        return sum(map(len, self.input_sizes)) + sum(map(len, self.output_sizes)) + len(self.frames) + 1

    def as_entry(self) -> Entry:
        operation = self.profiling_name.partition(":")[2] or self.profiling_name
        is_p2p = operation.startswith(("send", "recv")) if self.is_p2p is None else self.is_p2p
        return Entry(
            record=self.record_id,
            pg_id=self.pg_id,
            group=self.process_group[0],
            seq=self.collective_seq_id,
            p2p_seq=self.p2p_seq_id,
            op_id=self.op_id,
            operation=operation,
            is_p2p=is_p2p,
            input_sizes=self.input_sizes,
            output_sizes=self.output_sizes,
            input_dtypes=self.input_dtypes,
            output_dtypes=self.output_dtypes,
            state=self.state,
            created_ns=self.time_created_ns,
            frames=tuple(Frame(frame.filename, frame.line, frame.name) for frame in self.frames),
        )


class Document(_Part):
    """A whole dump; groups and entries are checked one by one, so that their sums can be limited."""

    version: Text
    pg_config: dict[Text, object] = {}
    pg_status: dict[Count, _Status] = {}
    entries: list[object] = Field(default=[], max_length=MAX_ENTRIES)
    rank: Count | None = None

    def as_dump(self, name: str, rank: int | None) -> Dump:
        """Return the dump of `rank`, by default the only rank that is a member of every group here.

        Raises:
            MalformedError: the rank cannot be told, or the entries unfold into too much.
            ValidationError: an entry is not one.
        """
        groups = self._groups()
        known = rank if rank is not None else self.rank
        known = known if known is not None else _common_member(groups)
        if known is None:
            raise MalformedError("does not tell which rank wrote it")
        status = {
            pg_id: Progress(max(counts.last_enqueued_collective, 0), max(counts.last_completed_collective, 0))
            for pg_id, counts in self.pg_status.items()
        }
        return Dump(name, known, self.version, groups, status, self._entries())

    def _groups(self) -> dict[str, Group]:
        found, members = {}, 0
        for key, value in self.pg_config.items():
            group = _Group.model_validate(value)
            members += len(group.ranks)
            if members > MAX_MEMBERS:
                raise MalformedError("lists more members of groups than any dump has")
            found[key] = Group(group.name or key, group.desc, group.ranks)
        return found

    def _entries(self) -> tuple[Entry, ...]:
        found, parts = [], 0
        for value in self.entries:
            entry = _Entry.model_validate(value)
            parts += entry.parts
            if parts > MAX_PARTS:
                raise MalformedError("unfolds into more sizes and frames than any dump has")
            found.append(entry.as_entry())
        return tuple(sorted(found, key=lambda entry: entry.record))


def _common_member(groups: dict[str, Group]) -> int | None:
    members = [set(group.ranks) for group in groups.values() if group.ranks]
    common = set.intersection(*members) if members else set()
    return common.pop() if len(common) == 1 else None


def numel(sizes: Sizes) -> int:
    """Return the number of elements of all tensors together; a scalar (no dimension) has one."""
    total = 0
    for shape in sizes:
        product = 1
        for dimension in shape:
            product *= dimension
        total += product
    return total
