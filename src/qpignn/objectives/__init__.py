"""What is good: pure functions of bounds and targets. Unequal shapes raise, never broadcast."""
