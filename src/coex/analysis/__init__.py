"""Evaluation against RAM: how well the agent is located."""
