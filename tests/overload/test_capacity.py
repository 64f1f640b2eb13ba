"""What the calibration says where nothing can be measured."""

from __future__ import annotations

import asyncio

import pytest
from tests.ports import free_port

from overload.callers import Target
from overload.capacity import measure


def test_a_server_that_does_not_answer_is_one_sentence() -> None:
    """And not a group of exceptions, one a lane."""
    with pytest.raises(RuntimeError, match=r"a call ended as failed \(ConnectionRefusedError\) while nothing"):
        asyncio.run(measure(Target(free_port()), lanes=3, seconds=1, seed=0))
