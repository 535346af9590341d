"""Hosts of a network on this machine: network namespaces with addresses of their own, joined by a bridge.

Needs Linux, the command `ip` and the right to make namespaces.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence


class Hosts:
    """So many hosts with the addresses 10.97.0.1, 10.97.0.2, …; each has one network interface, `net0`."""

    def __init__(self, count: int) -> None:
        self._names = [f"coex{os.getpid()}h{number}" for number in range(count)]
        self.addresses = [f"10.97.0.{number + 1}" for number in range(count)]

    def start(self, number: int, command: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[str]":
        """Starts a command on a host; what it says on standard error can be read."""
        line = ["ip", "netns", "exec", self._names[number], *command]
        return subprocess.Popen(line, env={**os.environ, **environment}, text=True, stderr=subprocess.PIPE)

    def cut_off(self, number: int) -> None:
        """Lets a host vanish: nothing that is sent to it arrives, and nobody is told."""
        _ip("-n", self._names[number], "link", "set", "net0", "down")

    def processes(self, number: int) -> list[int]:
        """Returns what runs on a host."""
        return [int(text) for text in _ip("netns", "pids", self._names[number]).split()]


@contextlib.contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """Makes the hosts, and removes them in the end."""
    made, bridge = Hosts(count), f"coexb{os.getpid()}"
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("link", "set", bridge, "up")
        for name, address in zip(made._names, made.addresses, strict=True):
            _ip("netns", "add", name)
            _ip("link", "add", name[-14:], "type", "veth", "peer", "name", "net0", "netns", name)
            _ip("link", "set", name[-14:], "master", bridge, "up")
            _ip("-n", name, "address", "add", f"{address}/24", "dev", "net0")
            for interface in ("net0", "lo"):
                _ip("-n", name, "link", "set", interface, "up")
        yield made
    finally:
        for command in [("netns", "delete", name) for name in made._names] + [("link", "delete", bridge)]:
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip(*command)


def can_make_hosts() -> bool:
    """Whether this machine lets us."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        return False
    try:
        with hosts(1):
            return True
    except subprocess.CalledProcessError:
        return False


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout
