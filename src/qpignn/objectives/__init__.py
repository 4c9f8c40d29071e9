"""Training objectives: pure functions of bounds and targets; unequal shapes raise an error."""
