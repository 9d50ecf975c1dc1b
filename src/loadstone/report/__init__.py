"""Shows results; pure functions over them."""
