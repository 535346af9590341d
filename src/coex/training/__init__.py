"""The training loop: collect, reward, learn, log; and what only measures."""
