"""Rally task files: reads and checks them, and returns typed values."""
