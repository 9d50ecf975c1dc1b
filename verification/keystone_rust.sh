#!/bin/bash
# Builds Keystone in Rust from a source folder, and the policy agent that it asks, for the lab's
# implementation=rust: verification/keystone_rust.sh SOURCE FOLDER. Half an hour on two cores.
set -euo pipefail
cd "$1"
source=$PWD folder=$2
OPA=github.com/open-policy-agent/opa@v1.22.2
# Not on the path of a request (WASM plugins, Raft, LDAP, Vault ...): optimizing them takes long.
UNUSED="cranelift-assembler-x64 cranelift-bforest cranelift-codegen cranelift-control
    cranelift-entity cranelift-frontend cranelift-native wasmtime wasmtime-environ
    wasmtime-internal-cranelift wasmtime-internal-fiber wasmtime-internal-unwinder
    wasmtime-internal-winch pulley-interpreter regalloc2 extism wasi-common wiggle openraft fjall
    lsm-tree ldap3 vaultrs openidconnect webauthn-rs webauthn-rs-core"

for program in cargo go protoc pkg-config cmake; do
    command -v "$program" >/dev/null || {
        echo "$program is missing: apt-get install protobuf-compiler libprotobuf-dev" \
            "pkg-config libssl-dev cmake, cargo from rustup, go from its archive" >&2
        exit 3
    }
done
[ -d policy ] && [ -f Cargo.lock ] || {
    echo "$source has no policy/ or Cargo.lock: name a checkout of openstack-experimental/keystone" >&2
    exit 2
}
mkdir -p "$folder/building"
export CARGO_TARGET_DIR=$folder/building/target CARGO_PROFILE_RELEASE_LTO=off
export GOBIN=$folder/building/bin GOPATH=$folder/building/go GOCACHE=$folder/building/go-cache
optimized=()
for name in $UNUSED; do
    optimized+=(--config "profile.release.package.$name.opt-level=0")
done
go install "$OPA"
cargo build --release --locked --package openstack-keystone \
    --package openstack-keystone-cli-manage --bin keystone --bin keystone-manage "${optimized[@]}"
for program in "$CARGO_TARGET_DIR"/release/keystone{,-manage} "$GOBIN/opa"; do
    install -s "$program" "$folder/" 2>/dev/null || install "$program" "$folder/"
done
rm -rf "$folder/policy"
cp -R policy "$folder/policy"
git rev-parse --short=8 HEAD >"$folder/commit" 2>/dev/null || echo "unknown commit" >"$folder/commit"
chmod -R u+w "$folder/building" # Go's module cache is read-only.
rm -rf "$folder/building"
echo "$folder"
