"""Several processes as one run: what they tell each other, by torch.distributed.

Only tensors travel: nothing that arrives is ever unpickled.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous
from torch.nn import functional as F

from coex.core.shared import allocate_shared, open_shared
from coex.errors import CoexError, UsageError

TIMEOUT = "COEX_TIMEOUT"  # environment variable: seconds after which a process that does not answer is given up
_SECONDS = 600  # by default: some bonuses take minutes over a rollout, while the others wait


class LostError(CoexError):
    """Another process of the run has ended, or does not answer."""


@dataclass(frozen=True)
class Ranks:
    """This process among those that share a run; a process alone says nothing to anybody.

    Rank r of W has the columns r·N/W … (r + 1)·N/W − 1 of everything that is ordered by environment. The first rank has
    the bonus, and writes the run's directory.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0  # on this machine
    local_world_size: int = 1
    # By length and type of numbers: memory that the ranks share, if all are on one machine; a row each, and their sum.
    _rows: dict[tuple[int, torch.dtype], Tensor | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def share_of_cores(self) -> int:
        """Returns how many worker processes this one may start: one a core, of all those on this machine."""
        return max(1, (os.cpu_count() or 1) // self.local_world_size)

    def columns(self, num_envs: int, rank: int | None = None) -> slice:
        """Returns the environments of a rank, this one's if none is named."""
        size, rank = num_envs // self.world_size, self.rank if rank is None else rank
        return slice(rank * size, (rank + 1) * size)

    def fill(self, parts: Sequence[Tensor]) -> None:
        """Puts the columns of the other ranks into (T, N, …) tensors, of which this one has written its own."""
        if self.world_size == 1:
            return
        own = [part[:, self.columns(part.shape[1])].contiguous() for part in parts]
        message = torch.cat([part.view(-1).view(torch.uint8) for part in own])
        received = [torch.empty_like(message) for _ in range(self.world_size)]
        with _told_apart(self):
            dist.all_gather(received, message)
        for rank, message in enumerate(received):
            contents = message.split([part.nbytes for part in own])
            for whole, part, content in zip(parts, own, contents, strict=True):
                # A clone begins where numbers of any size may.
                whole[:, self.columns(whole.shape[1], rank)] = content.clone().view(part.dtype).view(part.shape)

    def gather(self, own: Tensor, shapes: Sequence[Sequence[int]]) -> list[Tensor]:
        """Returns the tensors of all ranks, whose shapes are known, to the first; nothing to the others."""
        with _told_apart(self):
            if not self.is_first:
                dist.send(own.contiguous(), 0)
                return []
            parts = [own, *(own.new_empty(tuple(shape)) for shape in shapes[1:])]
            for rank, part in enumerate(parts[1:], start=1):
                dist.recv(part, rank)
        return parts

    def gather_bytes(self, content: bytes) -> list[bytes]:
        """Returns what all ranks have to say to the first; nothing to the others."""
        sizes = torch.zeros(1, self.world_size, dtype=torch.int64)
        sizes[0, self.rank] = len(content)
        self.fill([sizes])
        parts = self.gather(_as_tensor(content), sizes.T.tolist())
        return [part.numpy().tobytes() for part in parts]

    def broadcast(self, tensor: Tensor) -> None:
        """Overwrites a tensor by the first rank's."""
        if self.world_size > 1:
            with _told_apart(self):
                dist.broadcast(tensor, 0)

    def broadcast_bytes(self, content: bytes) -> bytes:
        """Returns what the first rank says; what the others say is not heard."""
        size = torch.tensor(len(content))
        self.broadcast(size)
        message = _as_tensor(content) if self.is_first else torch.empty(int(size), dtype=torch.uint8)
        self.broadcast(message)
        return message.numpy().tobytes()

    def decide(self, number: float) -> float:
        """Returns the first rank's number: what depends on a clock or a disk is decided there."""
        agreed = torch.tensor(number, dtype=torch.float64)
        self.broadcast(agreed)
        return agreed.item()

    def wait(self) -> None:
        """Returns when all have come here."""
        if self.world_size > 1:
            with _told_apart(self):
                dist.barrier()

    def any(self, value: bool) -> bool:
        """Returns whether it is true of one of them."""
        return bool(self.total(torch.tensor(int(value))))

    def total(self, numbers: Tensor) -> Tensor:
        """Returns the sum of the ranks' whole numbers, which is the same in any order."""
        if self.world_size > 1:
            with _told_apart(self):
                dist.all_reduce(numbers)
        return numbers

    def sum(self, vector: Tensor) -> Tensor:
        """Returns the sum of the ranks' (L,) numbers, along a binary tree (see `tree_sum`).

        Each rank sums one piece for all of them, so that about 2·L numbers leave it, however many ranks there are.
        """
        if self.world_size == 1:
            return vector
        rows = self._shared_rows(vector)
        if rows is None:
            return self._sum_by_messages(vector)
        first, last = (len(vector) * rank // self.world_size for rank in (self.rank, self.rank + 1))
        rows[self.rank] = vector
        self.wait()
        rows[-1, first:last] = tree_sum(rows[:-1, first:last].unbind())
        self.wait()
        return rows[-1].clone()

    def _sum_by_messages(self, vector: Tensor) -> Tensor:
        missing = -len(vector) % self.world_size
        padded = F.pad(vector, (0, missing)) if missing else vector  # padding copies
        pieces, whole = torch.empty_like(padded), torch.empty_like(padded)
        with _told_apart(self):
            dist.all_to_all_single(pieces, padded)
            dist.all_gather(list(whole.chunk(self.world_size)), tree_sum(pieces.chunk(self.world_size)))
        return whole[: len(vector)]

    def _shared_rows(self, like: Tensor) -> Tensor | None:
        """Returns (W + 1, L) numbers that all ranks see, where gloo has sockets only; None where they cannot be had."""
        if self.local_world_size < self.world_size:
            return None
        key, shape = (len(like), like.dtype), (self.world_size + 1, len(like))
        if key not in self._rows:
            path = self.broadcast_bytes(allocate_shared(shape, like.dtype) if self.is_first else b"").decode()
            whole = open_shared(path, shape, like.dtype) if path else None
            self.wait()
            if path and self.is_first:
                os.unlink(path)  # all have it open: it goes with the last of them
            self._rows[key] = whole
        return self._rows[key]


@dataclass(frozen=True)
class Shards:
    """Blocks of environments whose networks' passes and gradients are computed apart, whoever computes them.

    Their number is a setting: runs with the same one are the same, bit by bit, for any number of processes.
    """

    count: int = 1
    ranks: Ranks = field(default_factory=Ranks)

    def own(self, num_envs: int) -> list[slice]:
        """Returns the environments of each of this rank's shards."""
        size, mine = num_envs // self.count, self.ranks.columns(num_envs)
        return [slice(first, first + size) for first in range(mine.start, mine.stop, size)]

    def indices(self) -> range:
        """Returns which of all shards are this rank's."""
        mine = self.ranks.columns(self.count)
        return range(mine.start, mine.stop)

    def sum(self, vectors: Sequence[Tensor]) -> Tensor:
        """Returns the sum over all shards of (L,) numbers, given those of this rank's, on their device."""
        return self.ranks.sum(tree_sum([vector.cpu() for vector in vectors])).to(vectors[0].device)


def tree_sum(rows: Sequence[Tensor]) -> Tensor:
    """R times (L,) → (L,) the sum of neighbours, of the sums of neighbours, and so on; R is a power of two.

    A rank's own rows are a branch of the tree of all: so it does not matter how many ranks they are divided among.
    """
    while len(rows) > 1:
        rows = [one + other for one, other in zip(rows[0::2], rows[1::2], strict=True)]
    return rows[0]


def is_first_process() -> bool:
    """Whether this process is the first of those that torchrun has started, or alone; others set RANK, too."""
    return not dist.is_torchelastic_launched() or os.environ["RANK"] == "0"


@contextlib.contextmanager
def joined_ranks(shards: int) -> Iterator[Ranks]:
    """Joins the processes that torchrun has started for a run of so many shards; without torchrun, there is one.

    Raises UsageError where the shards cannot be divided among them.
    """
    world_size = int(os.environ["WORLD_SIZE"]) if dist.is_torchelastic_launched() else 1
    if world_size == 1:
        yield Ranks()
        return
    if shards % world_size:
        raise UsageError(
            f"{shards} shard{'s' * (shards > 1)} cannot be divided among {world_size} processes: "
            f"set a power of two that is a multiple of their number, such as --set shards={_power(world_size)}"
        )
    rank, local_rank, local_world_size = (int(os.environ[n]) for n in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    ranks = Ranks(rank, world_size, local_rank, local_world_size)
    with _told_apart(ranks):
        timeout = timedelta(seconds=_timeout())
        store = _agreed_store(next(rendezvous("env://", timeout=timeout))[0], ranks)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=timeout)
    try:
        yield ranks
    finally:
        dist.destroy_process_group()


def _agreed_store(store: Store, ranks: Ranks) -> Store:
    """Returns a part of torchrun's store that only the processes that are alive now know of.

    When torchrun starts them again, the store is the same and has the addresses of those that were: gloo would call
    them. How often they were started does not tell the times apart, as each host's torchrun counts for itself. So each
    process says a word of its own, and the first answers to these words: an old one is answered in vain.
    """
    own, deadline = secrets.token_hex(8), time.monotonic() + _timeout()
    store.set(f"coex/word/{ranks.rank}", own)
    missing = set(range(1, ranks.world_size)) if ranks.is_first else {0}
    while missing:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no word from process {min(missing)} at the start")
        if not ranks.is_first and store.check([f"coex/answer/{own}"]):
            own = store.get(f"coex/answer/{own}").decode()
            store.set(f"coex/heard/{own}/{ranks.rank}", "")
            break
        for rank in sorted(missing) if ranks.is_first else ():
            if store.check([f"coex/heard/{own}/{rank}"]):
                missing.remove(rank)
            elif store.check([f"coex/word/{rank}"]):
                store.set(f"coex/answer/{store.get(f'coex/word/{rank}').decode()}", own)
        time.sleep(0.01)
    return PrefixStore(f"coex/{own}", store)


def _power(least: int) -> int:
    return int(2 ** (least - 1).bit_length())


def _timeout() -> float:
    text = os.environ.get(TIMEOUT, str(_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds < 1e6:
        raise UsageError(f"{TIMEOUT} takes a number of seconds, at least 1, not {text!r}")
    return seconds


def _as_tensor(content: bytes) -> Tensor:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else torch.empty(0, dtype=torch.uint8)


@contextlib.contextmanager
def _told_apart(ranks: Ranks) -> Iterator[None]:
    """Says in one line that the others are lost, where torch.distributed says so in its own words."""
    try:
        yield
    except RuntimeError as error:
        cause = str(error).strip().split("\n")[0].split("] ", 1)[-1].split(". This is")[0]  # guesses are left out
        raise LostError(
            f"process {ranks.rank} of {ranks.world_size} has lost another one, which ended or has not answered for "
            f"{_timeout():g} s ({cause})"
        ) from None
