"""What exactly is sent, and when."""
