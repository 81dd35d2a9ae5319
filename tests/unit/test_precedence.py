"""Work gives way to deliveries that wait to be stored, and is never stopped by them."""

from __future__ import annotations

import asyncio

import pytest

from bot.web.precedence import Precedence


async def test_a_few_deliveries_hold_no_work_back() -> None:
    precedence = Precedence(many=2, turn_s=60)
    with precedence.storing(), precedence.storing():
        async with asyncio.timeout(20):
            await asyncio.gather(*(precedence.give_way() for _ in range(5)))


async def test_work_waits_for_a_crowd_and_goes_on_at_once_after_it() -> None:
    precedence = Precedence(many=1, turn_s=60)
    with pytest.raises(ZeroDivisionError), precedence.storing(), precedence.storing():  # noqa: PT012
        pieces = [asyncio.create_task(precedence.give_way()) for _ in range(3)]
        done, _ = await asyncio.wait(pieces, timeout=0.2)
        assert not done
        raise ZeroDivisionError  # a delivery that cannot be stored is no longer waiting either
    async with asyncio.timeout(20):
        await asyncio.gather(*pieces)


async def test_a_crowd_that_never_ends_lets_one_piece_after_the_other_through() -> None:
    precedence = Precedence(many=0, turn_s=0.02)
    went: list[int] = []

    async def piece(number: int) -> None:
        await precedence.give_way()
        went.append(number)

    with precedence.storing():
        async with asyncio.timeout(20):
            await asyncio.gather(*(piece(number) for number in range(4)))
    assert went == [0, 1, 2, 3]


async def test_a_piece_that_is_given_up_leaves_the_line() -> None:
    precedence = Precedence(many=0, turn_s=60)
    with precedence.storing():
        first, second = (asyncio.create_task(precedence.give_way()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
    async with asyncio.timeout(20):
        await second
