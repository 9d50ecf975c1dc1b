"""What must exist before load can start: users, tokens and so on."""
