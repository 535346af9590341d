"""Collecting what agents see and do, T steps of N environments at a time."""
