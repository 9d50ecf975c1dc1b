"""Commands that are killed or lose their terminal at random moments."""
