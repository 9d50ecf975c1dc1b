"""What an installation without Rust takes, and whether it works, on systems with Python alone."""
