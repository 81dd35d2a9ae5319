"""Text that JSON can carry and nothing else can hold: half a surrogate pair, NUL. It is answered as any other text."""

from __future__ import annotations

import pytest
from stories import FAILURE, MODELS, replies, report
from world import World

from bot.foreign_json import load_foreign, mend_foreign

NOTHING_UNEXPECTED = True


@pytest.mark.parametrize("mark", ["\ud800", "\udfff\ud800", "\x00"], ids=["half a pair", "a pair turned round", "NUL"])
async def test_a_command_with_it_is_answered_once(world: World, mark: str) -> None:
    world.github.add_user("ada", "write")
    pull = await world.github.open_pull(author="ada", labels=[f"needs {mark}"])
    pull.title = f"Fuse {mark}"
    comment = await world.github.comment(pull, "ada", f"/mlm ping {mark}\n\n/mlm rerun {mark}")
    await world.idle(within_s=60)
    (answer,) = replies(world, pull)
    assert "I am here." in answer
    assert "CI has not started" in answer
    assert world.github.reactions(comment) == ["confused"]
    assert world.tasks_done("command", "gave_up") == 0


async def test_a_failed_job_of_such_a_branch_is_explained(world: World) -> None:
    pull = await world.github.open_pull()
    run = await world.github.start_run(pull)
    pull.title = pull.head_ref = "\ud800 \x00"
    await world.github.label(pull, "\udc00")
    log = b"\xed\xa0\x80 \x00 \xff" + FAILURE.encode() + b"\xed\xb0\x80\x00"
    await world.github.finish_job(run, MODELS, "failure", log=log)
    await world.idle(within_s=60)
    assert "flash_attn" in report(world, pull)
    assert world.tasks_done("diagnose") == 1


def test_only_what_is_no_text_is_replaced() -> None:
    body = rb'{"a\ud800": ["\u0000x", "\ud83d\ude00", "\\ud800", 1, null], "b": "\udc00\ud800"}'
    whole = {"a\ufffd": ["\ufffdx", "\U0001f600", "\\ud800", 1, None], "b": "\ufffd\ufffd"}
    assert load_foreign(body) == whole
    assert load_foreign(mend_foreign(body)) == whole
    assert mend_foreign(b'{"\\ud800": ') == b'{"\\ud800": '
    assert mend_foreign(b"plain") == b"plain"
    with pytest.raises(ValueError, match="Expecting"):
        load_foreign(b'{"\\ud800": ')
