"""`python -m coex`: the same as the command `coex`."""

import sys

from coex.cli import main

if __name__ == "__main__":
    sys.exit(main())
