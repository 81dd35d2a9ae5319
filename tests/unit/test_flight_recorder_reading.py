"""Flight Recorder dumps are recognised and read in both forms; whatever else a file holds ends in a clear reason."""

from __future__ import annotations

import json
import pickle

import pytest
from flight_dumps import Faults, as_json, pickled, pipeline_job, run, source_of
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.model import Source
from analyzers.parsers import flight_recorder, flight_recorder_bytes, flight_recorder_document
from analyzers.parsers.flight_recorder import is_flight_dump, looks_like_dump, read_dump
from analyzers.parsers.flight_recorder_model import Dump, Frame, Group, Progress, Unreadable

DOCUMENTS = run(pipeline_job(), Faults(stopped={5: 7}))


def why(data: bytes, name: str = "_dump_0") -> str:
    read = read_dump(source_of(data, name))
    assert isinstance(read, Unreadable), read
    assert read.name == name
    return read.why


@pytest.mark.parametrize(
    "name",
    [
        "_dump_0",
        "1/assets/fr/_dump_15",
        "logs/gpt3_dump_7.json",
        "nccl_trace_rank_3",
        "cache/torch/comm_lib_trace_rank_12",
        "nccl_trace_rank_3.pkl",
        "run.flight_recorder_8.pickle",
        "dump_rank_4",
    ],
)
def test_dumps_are_known_by_name(name: str) -> None:
    assert is_flight_dump(name)


@pytest.mark.parametrize(
    "name",
    ["0/stderr.log", "events.out.tfevents.1.2.0", "_dump_x", "dump.json", "trace_12.json", "coredump_3", "dump_3.log"],
)
def test_other_files_are_not(name: str) -> None:
    assert not is_flight_dump(name)


def test_dumps_of_any_name_are_known_by_their_first_bytes() -> None:
    assert looks_like_dump(pickled(DOCUMENTS[0])[:128])
    assert looks_like_dump(pickle.dumps(DOCUMENTS[0], protocol=5)[:128])
    assert looks_like_dump(as_json(DOCUMENTS[0])[:128])
    assert not looks_like_dump(pickle.dumps({"state_dict": 1}))
    assert not looks_like_dump(b'{"traceEvents": []}')
    assert not looks_like_dump(b"")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_and_its_json_form_say_the_same(protocol: int) -> None:
    for rank, document in DOCUMENTS.items():
        name = f"fr/_dump_{rank}"
        from_pickle = read_dump(source_of(pickle.dumps(document, protocol=protocol), name))
        assert isinstance(from_pickle, Dump)
        assert from_pickle.rank == rank
        assert read_dump(source_of(as_json(document), name)) == from_pickle


def test_what_a_dump_says_is_kept() -> None:
    document = {
        "version": "2.10",
        "pg_config": {"7": {"name": "7", "desc": "TENSOR", "ranks": "[2, 3]"}},
        "pg_status": {"4": {"last_enqueued_collective": 9, "last_completed_collective": -1}},
        "entries": [
            {
                "record_id": 40,
                "pg_id": 4,
                "process_group": ("7", "TENSOR"),
                "collective_seq_id": 9,
                "p2p_seq_id": 0,
                "op_id": 9,
                "profiling_name": "nccl:all_reduce",
                "input_sizes": [[2, 3]],
                "output_sizes": [[6]],
                "input_dtypes": ["Float"],
                "output_dtypes": ["Half"],
                "state": "started",
                "time_created_ns": 17,
                "frames": [{"name": "forward", "filename": "/opt/repo/model.py", "line": 12}],
            }
        ],
    }
    dump = read_dump(source_of(pickled(document), "_dump_3"))
    assert isinstance(dump, Dump)
    assert dump.groups == {"7": Group("7", "TENSOR", (2, 3))}
    assert dump.status == {4: Progress(9, 0)}
    (entry,) = dump.entries
    assert (entry.operation, entry.seq, entry.record, entry.is_p2p) == ("all_reduce", 9, 40, False)
    assert (entry.input_sizes, entry.output_sizes, entry.input_dtypes) == (((2, 3),), ((6,),), ("Float",))
    assert entry.frames == (Frame("/opt/repo/model.py", 12, "forward"),)


def test_the_oldest_version_has_less() -> None:
    document = {
        "version": "2.0",
        "entries": [{"process_group": "0", "seq_id": 4, "profiling_name": "nccl:send 0->1", "state": "scheduled"}],
    }
    dump = read_dump(source_of(pickled(document), "nccl_trace_rank_1"))
    assert isinstance(dump, Dump)
    assert [(entry.group, entry.seq, entry.is_p2p) for entry in dump.entries] == [("0", 4, True)]


def test_a_nameless_dump_tells_its_rank_by_its_groups() -> None:
    job = pipeline_job()
    read = read_dump(source_of(pickled(run(job, Faults(stopped={5: 7}))[6]), "renamed.bin"))
    assert isinstance(read, Dump)
    assert read.rank == 6
    shared = {"version": "2.9", "pg_config": {"0": {"ranks": "[0, 1]"}}}
    assert "which rank" in why(pickled(shared), "renamed.bin")


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("code ran",)


def test_a_pickle_that_would_run_code_runs_none(capsys: pytest.CaptureFixture[str]) -> None:
    for protocol in range(2, 6):
        assert "could run code" in why(pickle.dumps({"version": Evil()}, protocol=protocol))
    assert capsys.readouterr().out == ""


DEEP_KEY = b"\x80\x02}N" + b"\x85" * 500_000 + b"K\x01s."


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"\x00\x01", "neither a pickle nor JSON"),
        (b"\x80\x02", "cut off"),
        (b"\x80\x02.", "does not end in one value"),
        (b"\x80\x02}" + b"r\xff\xff\xff\xff" + b".", "no Flight Recorder dump"),  # a memo slot of four billion
        (DEEP_KEY, "a key that is neither"),
        (b"\x80\x02]" + b"h\x07.", "damaged"),
        (b"\x80\x02K\x01K\x02a.", "no list"),
        (b"\x80\x02K\x01K\x02K\x03s.", "no dict"),
        (b"\x80\x02X\xff\xff\xff\x7fabc.", "damaged"),
        (b"{", "no valid JSON"),
        (b'{"version":' + b"[" * 100_000, "no valid JSON"),
        (b"[1]", "neither a pickle nor JSON"),
        (pickle.dumps([1], protocol=2), "no Flight Recorder dump"),
        (pickle.dumps({"version": "2.9", "entries": [7]}, protocol=2), "no Flight Recorder dump"),
        (b'{"version": "2.9", "entries": [{"process_group": ["0", ""]}]}', "collective_seq_id"),
    ],
)
def test_a_damaged_or_hostile_file_ends_in_a_reason(data: bytes, reason: str) -> None:
    assert reason in why(data)


def test_a_small_file_that_unfolds_into_a_huge_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_recorder_document, "MAX_PARTS", 1000)
    entry = {
        "process_group": ("0", ""),
        "collective_seq_id": 1,
        "profiling_name": "nccl:all_reduce",
        "input_sizes": [[1] * 30] * 30,
    }
    assert "unfolds" in why(pickled({"version": "2.9", "entries": [entry] * 100}))


def test_the_number_of_opcodes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_recorder_bytes, "MAX_OPCODES", 10)
    assert "more values" in why(pickled(DOCUMENTS[0]))


def test_a_file_past_the_limit_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_recorder, "MAX_BYTES", 2 * 1024 * 1024)
    pulled = []

    def endless() -> object:
        while True:
            pulled.append(1)
            yield b"\x80" * 1024 * 1024

    read = read_dump(Source("_dump_0", endless))  # type: ignore[arg-type]
    assert isinstance(read, Unreadable)
    assert "larger than 2 MiB" in read.why
    assert len(pulled) == 3


def test_a_dump_cut_at_any_byte_never_raises() -> None:
    for whole in (pickled(DOCUMENTS[4]), as_json(DOCUMENTS[4])):
        for end in range(len(whole)):
            assert isinstance(read_dump(source_of(whole[:end])), Unreadable)


@settings(deadline=None, max_examples=200)
@given(place=st.integers(0, 3000), byte=st.integers(0, 255))
def test_a_changed_byte_never_raises(place: int, byte: int) -> None:
    data = bytearray(pickled(DOCUMENTS[0]))
    data[place % len(data)] = byte
    assert isinstance(read_dump(source_of(bytes(data))), Dump | Unreadable)


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_json_never_raises(value: object) -> None:
    document = json.dumps({"version": "2.9", "pg_config": value, "entries": value}).encode()
    assert isinstance(read_dump(source_of(document)), Dump | Unreadable)
