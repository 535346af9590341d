"""Speed of this project beside that of its peers, measured on one machine in one run."""
