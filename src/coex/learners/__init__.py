"""A2C and PPO: one network, one way to collect and to step the optimiser; they differ in their loss."""
