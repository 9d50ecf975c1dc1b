"""This machine: paths, files, locks, the clock, signals, certificates, secrets in text."""
