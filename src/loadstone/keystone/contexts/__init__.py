"""What must exist before load can be made: users, tokens."""
