"""Statistics over seeds, and the scores that were published."""
