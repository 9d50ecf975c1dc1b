"""What the user asks for: task files in Rally's words, read, checked and made values."""
