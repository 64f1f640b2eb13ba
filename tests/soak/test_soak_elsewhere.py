"""The same through the sidecar, and where most streams wait in the shim's own queue."""

from __future__ import annotations

import pytest
from tests.soak.test_soak import soak


@pytest.mark.timeout(120)
def test_the_sidecar_leaves_nothing_either() -> None:
    """Neither in its own process, its connections to the upstream among it, nor at work in the engine behind it."""
    assert soak("--sidecar", "--streams", "300", "--tokens", "6", "--pace", "0.05")["wrong"] == []


def test_streams_that_wait_in_the_shims_own_queue_leave_nothing_either() -> None:
    """Most of those that leave do so before they have a place."""
    assert soak("--streams", "200", "--inflight", "40", "--pace", "0.03", "--rounds", "2")["wrong"] == []
