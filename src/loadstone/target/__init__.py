"""Targets: how one is chosen, connected to, reserved and watched."""
