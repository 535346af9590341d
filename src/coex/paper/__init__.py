"""The paper's tables and figures: one module each, with its runs, its published numbers and how it is drawn."""
