"""Shared foundations: compiled code and guarded gradient steps."""
