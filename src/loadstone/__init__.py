"""How much load a cloud's identity service bears, what gives way first, which setting lifts it."""
