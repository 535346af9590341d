"""What the agent's state is to the bonus (section 3): its location, its room and how often it was there."""
