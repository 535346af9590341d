"""`python -m coex`: the same as the command `coex`."""

import os
import sys

from coex.cli import main

if __name__ == "__main__":
    code = main()
    if "TORCHELASTIC_RUN_ID" in os.environ:
        # One of several processes: all is saved, and gloo has been seen to abort one that tidies up at its end.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
