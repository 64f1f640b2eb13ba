"""How one exchange stands, for whoever looks at it from outside."""

from __future__ import annotations

import asyncio

from lastword_shim.account.lifecycle import Lifecycle
from lastword_shim.exchange.inbound import Inbound
from lastword_shim.exchange.outbound import Outbound
from lastword_shim.exchange.timers import Timers
from lastword_shim.protocol.readings import Verdict


class Standing:
    """What can be seen of an exchange; looking changes nothing."""

    life: Lifecycle
    _in: Inbound
    _out: Outbound
    _timers: Timers
    _decided: asyncio.Future[Verdict]

    @property
    def credential(self) -> bytes:
        """Tells whose it is: the same for the same key, and of no use to anybody who learns it."""
        return self._in.credential

    @property
    def is_open(self) -> bool:
        """Whether it is not decided yet how it ends."""
        return not self._decided.done()

    @property
    def is_blocked(self) -> bool:
        """Whether a write waits for its client, so that it waits for nobody else."""
        return self._out.busy

    @property
    def progress_at(self) -> float:
        """When it last got anywhere: a token, or a client that began to read again; 0 if never (monotonic seconds)."""
        return max(self.life.last_token_at or 0.0, self._timers.unblocked_at)
