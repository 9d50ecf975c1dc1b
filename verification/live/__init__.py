"""What the live page costs."""
