"""Contingency-aware exploration: agents that learn what they control, and explore with it."""

import os

# torch's OpenMP threads otherwise spin while they wait and starve the emulators. It is read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"
