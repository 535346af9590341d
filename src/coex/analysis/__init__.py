"""Evaluation against RAM: how well the agent is located, and its room named."""
