"""The paper's method, in reading order: adm, sparsemax, locator, rooms, counts, bonus."""
