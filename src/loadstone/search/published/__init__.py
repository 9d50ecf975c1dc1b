"""Published search methods, to reproduce published figures."""
