"""What people look at: videos of agents at play, and one page about runs."""
