"""Signals as requests to stop."""

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any


class Interrupted(BaseException):
    """A signal came where work may be abandoned; like KeyboardInterrupt, not to be caught as an error."""


_IMPATIENT_SECONDS = 1.0  # `timeout` sends its signal to the process and to its group: that is one request, not two


class StopSignal:
    """Turns the first Ctrl-C or SIGTERM into a request to stop at the next step; a later one stops at once."""

    def __init__(self) -> None:
        self.code = 0  # the exit code: 128 + the signal's number
        self._asked_at = 0.0
        self._may_interrupt = False
        self._before: dict[int, Any] = {}

    def received(self) -> bool:
        return self.code != 0

    @contextlib.contextmanager
    def interrupting(self) -> Iterator[None]:
        """Within this, the request does not wait: it raises Interrupted. Nothing may be written to disk here."""
        self._may_interrupt = True
        try:
            if self.code:
                raise Interrupted
            yield
        finally:
            self._may_interrupt = False

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """Within this, a signal ends the process, even where it waits for another one and Python is not asked.

        For processes that write nothing: the one that does notices that they have gone.
        """
        if self.code:
            raise Interrupted
        try:
            for number in self._before:
                signal.signal(number, signal.SIG_DFL)
            yield
        finally:
            for number in self._before:
                signal.signal(number, self._handle)

    def __enter__(self) -> "StopSignal":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.code:
            if time.monotonic() - self._asked_at > _IMPATIENT_SECONDS:
                raise KeyboardInterrupt
            return
        self.code, self._asked_at = 128 + number, time.monotonic()
        if self._may_interrupt:
            raise Interrupted
