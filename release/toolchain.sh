#!/bin/sh
# Checks what building a checkout needs: Rust, a C compiler and Python, in the versions that
# Cargo.toml and pyproject.toml name. Ends with 3, after one line, if something is missing.
cd "$(dirname "$0")/.." || exit 3
rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
python=$(sed -n 's/^requires-python = ">=\(.*\)"/\1/p' pyproject.toml)
wheel="or install Loadstone from a wheel, which needs Python only: docs/install.md"

missing() {
    echo "loadstone: a checkout needs $1; $2, $wheel" >&2
    exit 3
}

at_least() { # VERSION LEAST
    [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]
}

rustup="install it with rustup"
for program in cargo rustc; do
    found=$("$program" --version 2>/dev/null | cut -d ' ' -f 2)
    [ -n "$found" ] || missing "Rust $rust or newer, and $program is not here" "$rustup"
    at_least "$found" "$rust" || missing "Rust $rust or newer, and $program here is $found" "$rustup"
done
command -v cc >/dev/null || missing "a C compiler (cc)" "apt-get install gcc libc6-dev"
for name in python3 python3.11 python3.12 python3.13 python3.14; do
    found=$("$name" --version 2>/dev/null | cut -d ' ' -f 2)
    [ -n "$found" ] && at_least "$found" "$python" && exit 0
done
missing "Python $python or newer, and none is on the PATH" "install one from your distribution"
