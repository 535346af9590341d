"""Worker processes: how they are started, asked and ended."""

import contextlib
import itertools
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any, Protocol, cast

import cv2

from coex.errors import CoexError

_CLOSE_SECONDS = 5.0


class Answers(Protocol):
    """What runs in a worker process: it answers requests, each about the environments of one connection.

    Of an iterator, each part is an answer, sent as soon as it is there.
    """

    action_names: list[str]

    def answer(self, request: str, payload: Any, members: slice) -> Any: ...
    def close(self) -> None: ...


class InProcess:
    """Stands for a connection to a worker that is in this process: what is asked is done when the answer is wanted."""

    def __init__(self, worker: Answers, members: slice) -> None:
        self._worker = worker
        self._members = members
        self._answers: Iterator[Any] = iter(())

    def send(self, message: tuple[str, Any]) -> None:
        if message[0] == "close":
            self._worker.close()
        else:
            self._answers = self._answer(*message)

    def _answer(self, request: str, payload: Any) -> Iterator[Any]:
        yield from _parts(self._worker.answer(request, payload, self._members))

    def recv(self) -> tuple[str, Any]:
        return "done", next(self._answers)

    def close(self) -> None:
        pass


@dataclass
class Channel:
    """The way to some environments of one group that one worker runs."""

    members: slice
    connection: Any  # a Connection, or InProcess
    process: Any = None  # None: this one

    def send(self, request: str, payload: Any = None) -> None:
        try:
            self.connection.send((request, payload))
        except (BrokenPipeError, ConnectionResetError):
            raise CoexError(_epitaph(self.process)) from None

    def receive(self) -> Any:
        try:
            kind, answer = self.connection.recv()
        except (EOFError, ConnectionResetError):
            raise CoexError(_epitaph(self.process)) from None
        if kind == "failed":
            raise answer
        return answer


def start_worker(make_worker: Callable[[], Answers], members: Sequence[slice]) -> list[Channel]:
    """Starts a worker's process, with a connection for each of the ranges of its environments."""
    # A fresh interpreter for each: a fork would copy torch's locks and threads.
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in members]
    theirs = {their: part for (_, their), part in zip(pipes, members, strict=True)}
    process = context.Process(target=serve, args=(theirs, make_worker), daemon=True)
    with _without_main():
        process.start()
    for their in theirs:
        their.close()
    return [Channel(part, our, process) for (our, _), part in zip(pipes, members, strict=True)]


def close_workers(workers: Sequence[Sequence[Channel]]) -> None:
    """Ends workers, each known by its channels."""
    for channels in workers:
        with contextlib.suppress(OSError):  # that worker may have ended already
            channels[0].connection.send(("close", None))
    for channels in workers:
        process = channels[0].process
        if process is not None:
            process.join(_CLOSE_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
        for channel in channels:
            channel.connection.close()


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hides the program's main module, which a new process would otherwise import, torch and all, before its work."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def serve(connections: Mapping[Connection, slice], make_worker: Callable[[], Answers]) -> None:
    """Answers requests until told to stop or until the main process is gone.

    Each connection is for some of the environments, which are stepped as a group.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # often sent to the whole group: the main process handles them
        signal.signal(number, signal.SIG_IGN)
    cv2.setNumThreads(0)  # one core a worker
    if hasattr(os, "SCHED_BATCH"):
        # A batch process, when woken, does not take the core from the one that woke it: the main process can
        # wake all workers before the first of them begins its work.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    connection = next(iter(connections))
    try:
        worker = make_worker()
        connection.send(("ready", worker.action_names))
        while True:
            for connection in cast("list[Connection]", wait(list(connections))):
                request, payload = connection.recv()
                if request == "close":
                    worker.close()
                    return
                for part in _parts(worker.answer(request, payload, connections[connection])):
                    connection.send(("done", part))
    except (EOFError, ConnectionError):
        return  # the main process has ended
    except CoexError as error:
        connection.send(("failed", error))
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        connection.send(
            ("failed", CoexError(f"an environment failed: {cause} ({place.filename}, line {place.lineno})"))
        )


def _parts(answer: Any) -> Iterator[Any]:
    return answer if isinstance(answer, Iterator) else iter([answer])


def count_workers(num_workers: int) -> int:
    """Returns how many processes a setting stands for: −1 is one a core, and 0, this process, counts as one."""
    return (os.cpu_count() or 1) if num_workers < 0 else max(num_workers, 1)


def split_evenly(size: int, count: int) -> list[slice]:
    """Splits `size` things, in order, as evenly as can be."""
    count = min(count, size)
    edges = [size * k // count for k in range(count + 1)]
    return [slice(start, end) for start, end in itertools.pairwise(edges)]


def _epitaph(process: Any) -> str:
    process.join(_CLOSE_SECONDS)
    code = process.exitcode
    cause = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
    return f"an environment worker (process {process.pid}) {cause}; the run cannot go on"
