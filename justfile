# The everyday recipes. `just` without arguments lists them.

_default:
    @just --list

# Build everything and show what memhost does, then stay up.
demo *ARGS:
    cargo run --release -- demo {{ARGS}}

# Run the host.
serve *ARGS:
    cargo run --release -- serve {{ARGS}}

# All tests, as in the README.
test *ARGS:
    cargo test --workspace {{ARGS}}

# What CI runs.
ci:
    .ci/run

# Format everything, the guests too.
fmt:
    cargo fmt --all
    cd tests/guests && cargo fmt --all
    cd tests/peer-extism && cargo fmt --all
    cd tests/fuzz && cargo fmt --all

# Lints, as CI has them.
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Advisories, licences and sources of every dependency.
deny:
    cargo deny check

# Kill a host under load, this many times.
crash ROUNDS="200":
    MEMHOST_CRASH_ROUNDS={{ROUNDS}} cargo test --release -p memhost-tests --test it crash -- --nocapture

# The benchmark tables, each with its floor in the same run.
bench *ARGS:
    cargo bench -p memhost-tests --bench pipeline -- {{ARGS}}
    cargo bench -p memhost-tests --bench http -- {{ARGS}}
    cargo bench -p memhost-tests --bench store -- {{ARGS}}
    cargo bench -p memhost-tests --bench start -- {{ARGS}}
    cargo bench -p memhost-tests --bench platform -- {{ARGS}}
    cargo bench -p memhost-tests --bench neighbours -- {{ARGS}}
    cargo bench -p memhost-tests --bench control -- {{ARGS}}
    cargo bench -p memhost-tests --bench recall -- {{ARGS}}
    cargo bench -p memhost-tests --bench adapter -- {{ARGS}}

# The pipeline beside Extism doing the same work, which is built first. Needs the target wasm32-unknown-unknown.
bench-peer:
    rustup target add wasm32-unknown-unknown
    cd tests/peer-extism && cargo build --release --locked -p peer-extism && cargo build --release --locked -p peer-extism-guest --target wasm32-unknown-unknown
    MEMHOST_PEER_EXTISM="{{justfile_directory()}}/tests/peer-extism/target/release/peer-extism {{justfile_directory()}}/tests/peer-extism/target/wasm32-unknown-unknown/release/peer_extism_guest.wasm" cargo bench -p memhost-tests --bench pipeline

# Recall of a provider on a LoCoMo file.
eval FILE *ARGS:
    cargo run --release -- eval locomo {{FILE}} {{ARGS}}

# Every fuzz target for so many seconds each.
fuzz SECONDS="20":
    cargo fuzz --version > /dev/null || cargo install --locked cargo-fuzz
    for target in admission conversion cursors origins placeholders; do cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none $target -- -max_total_time={{SECONDS}} || exit 1; done
