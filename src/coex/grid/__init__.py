"""Many runs of one file: planned, started and resumed on this machine, on Ray or by SLURM, and told about."""
