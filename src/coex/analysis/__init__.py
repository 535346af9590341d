"""Evaluation against RAM: how well the agent is located and rooms are told apart."""
