"""Trains with several methods, one after the other: what torchrun starts, so that processes start once for them all."""

import sys
from pathlib import Path

from coex.cli import main
from tests.bonuses.test_training import QUICK
from tests.distributed.test_processes import options

if __name__ == "__main__":
    out, *methods = sys.argv[1:]
    for method in methods:
        arguments = options(method, QUICK.get(method.partition("+")[2], {}))
        if code := main(["train", *arguments, "--out", str(Path(out) / method)]):
            sys.exit(code)
