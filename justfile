# The everyday recipes. `just` without arguments lists them.

_default:
    @just --list

# Build everything and show what memhost does, then stay up.
demo *ARGS:
    cargo run -- demo {{ARGS}}

# Run the host.
serve *ARGS:
    cargo run --release -- serve {{ARGS}}

# All tests, as in the README.
test *ARGS:
    cargo test --workspace {{ARGS}}

# The integration tests with hosts that keep memory in PostgreSQL, which they start themselves, but for those about the
# embedded store's files: `just postgres`, or `just postgres transfer`. Needs Debian's `postgresql`.
postgres *ARGS:
    MEMHOST_TEST_STORE=postgres cargo test -p memhost-tests --test it --locked -- {{ARGS}} \
        $(sed 's/^/--skip /' tests/embedded-store-only.txt)

# Hosts on one PostgreSQL that are killed, paused and cut off for ten minutes, or so many seconds: `just cluster 60`.
cluster SECONDS="600":
    MEMHOST_CLUSTER_SECONDS={{SECONDS}} cargo test -p memhost-tests --test it --locked -- --nocapture cluster_checker::

# Filters over a large operation log in PostgreSQL: pages touched, times. Ten million operations take some minutes to make.
filters ROWS="10000000":
    MEMHOST_FILTER_ROWS={{ROWS}} cargo test -p memhost-postgres --test it --locked -- --nocapture filters::

# The providers that the host does not embed, as components for a plugins directory.
providers:
    cargo build --locked --profile guest --target wasm32-wasip2 \
        -p memhost-agentcore -p memhost-claude-mem -p memhost-cross-agent -p memhost-facts \
        -p memhost-mem0 -p memhost-memos -p memhost-memsearch -p memhost-openviking -p memhost-supermemory -p memhost-taxonomy
    @ls "${CARGO_TARGET_DIR:-{{justfile_directory()}}/target}"/wasm32-wasip2/guest/memhost_*.wasm

# All packages from a clean clone, in target/release-files, each tried in a clean root: about an hour, `just release x86_64`
# without ARM about half. Needs root, and says what is not installed.
release *ARCHS: providers
    host/deploy/release/build {{ARCHS}}

# An MCP client that is none of ours, for the tests: the official Python SDK, in target/venv.
mcp-client:
    python3 -m venv target/venv
    target/venv/bin/pip install --quiet -r tests/mcp/requirements.txt

# claude-mem and the runtime that it needs, for the test of the bridge, in target/claude-mem. Linux on x86-64 only.
claude-mem:
    tests/tools/claude-mem

# The hooks under the real Claude Code and Codex, installed in target/agent-programs, with no network but loopback: the
# pinned versions, or `just agent-programs newest`. Linux on x86-64, with Node and Python.
agent-programs VERSION="pinned":
    tests/agent-hooks/real/install {{VERSION}}
    cargo build -p memhost
    tests/agent-hooks/real/run target/debug/memhost

# The memory systems that providers speak to, installed in target/vendors, under `plugin check` and through a proxy that
# breaks things: real servers, and stand-ins that the vendors' own clients check. They are large: not a part of CI.
vendors *NAMES="agentcore claude-mem mem0 memori memos memsearch openviking supermemory": providers
    cargo build -p memhost -p memhost-bridge
    for name in {{NAMES}}; do \
        built="${CARGO_TARGET_DIR:-{{justfile_directory()}}/target}/wasm32-wasip2/guest"; \
        tests/vendors/$name/run target/debug/memhost "$built/memhost_$(echo $name | tr - _).wasm" || exit 1; \
    done

# What they answer, recorded anew for the ordinary tests.
vendors-record *NAMES="agentcore claude-mem mem0 memori memos openviking supermemory":
    for name in {{NAMES}}; do tests/vendors/$name/record || exit 1; done

# The clients in Python and TypeScript, generated from the OpenAPI document, in target/clients; or `just clients python`.
clients *LANGUAGES="python typescript":
    for language in {{LANGUAGES}}; do sdk/$language/build.sh || exit 1; done

# The documents as a book with a search, in target/book, and its links checked. Installs mdbook in target/tools.
book:
    host/docs/book/build.sh

# What CI checks, with the tools that are here; `just ci-setup` installs the others.
check:
    .ci/check

# The tools that CI's checks need. Needs root.
ci-setup:
    .ci/setup

# Format everything, the guests too.
fmt:
    cargo fmt --all
    cd tests/guests && cargo fmt --all
    cd tests/peer-extism && cargo fmt --all
    cd tests/peer-tantivy && cargo fmt --all
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

# Cut the power of a host under load, this many times. Needs root, Python and loop devices.
powercut ROUNDS="50":
    cargo build --release -p memhost
    tests/durability/powercut target/release/memhost {{ROUNDS}}

# Fill the disk of a host under load, this many times. Needs root, Python and loop devices.
diskfull ROUNDS="25":
    cargo build --release -p memhost
    tests/durability/diskfull target/release/memhost {{ROUNDS}}

# Every attack for this many seconds, beside measured neighbours. ATTACK=words runs only those whose names contain that.
attacks SECONDS="10":
    ATTACK_SECONDS={{SECONDS}} cargo test --release -p memhost-tests --test it attacks_leave -- --ignored --nocapture

# The benchmark tables, each with its floor in the same run.
bench *ARGS:
    cargo bench -p memhost-tests --bench pipeline -- {{ARGS}}
    cargo bench -p memhost-tests --bench http -- {{ARGS}}
    cargo bench -p memhost-tests --bench mcp -- {{ARGS}}
    cargo bench -p memhost-tests --bench store -- {{ARGS}}
    cargo bench -p memhost-tests --bench start -- {{ARGS}}
    cargo bench -p memhost-tests --bench platform -- {{ARGS}}
    cargo bench -p memhost-tests --bench neighbours -- {{ARGS}}
    cargo bench -p memhost-tests --bench control -- {{ARGS}}
    cargo bench -p memhost-tests --bench explorer -- {{ARGS}}
    cargo bench -p memhost-tests --bench recall -- {{ARGS}}
    cargo bench -p memhost-tests --bench agent_hooks -- {{ARGS}}
    cargo bench -p memhost-tests --bench facts -- {{ARGS}}
    cargo bench -p memhost-tests --bench cross_agent -- {{ARGS}}
    cargo bench -p memhost-tests --bench taxonomy -- {{ARGS}}
    cargo bench -p memhost-tests --bench service -- {{ARGS}}
    cargo bench -p memhost-embeddings --bench speed -- {{ARGS}}

# The release binary under a load generator, beside a bare axum handler in the same run. Needs wrk.
load:
    cargo build --release -p memhost
    cargo bench -p memhost-tests --bench load

# The figures that must not get worse: three runs, their medians beside those in tests/benches/kept.json. It fails if
# a median is worse than its tolerance. About five minutes on a quiet machine. Needs wrk.
bench-gate:
    cargo build --release --locked -p memhost
    rm -f target/figures
    for run in 1 2 3; do for bench in pipeline http mcp store load neighbours start; do \
        MEMHOST_FIGURES="{{justfile_directory()}}/target/figures" cargo bench -q -p memhost-tests --bench $bench \
            || exit 1; \
    done; done
    MEMHOST_FIGURES="{{justfile_directory()}}/target/figures" cargo bench -q -p memhost-tests --bench gate

# The pipeline beside Extism doing the same work, which is built first. Needs the target wasm32-unknown-unknown.
bench-peer:
    rustup target add wasm32-unknown-unknown
    cd tests/peer-extism && cargo build --release --locked -p peer-extism && cargo build --release --locked -p peer-extism-guest --target wasm32-unknown-unknown
    MEMHOST_PEER_EXTISM="{{justfile_directory()}}/tests/peer-extism/target/release/peer-extism {{justfile_directory()}}/tests/peer-extism/target/wasm32-unknown-unknown/release/peer_extism_guest.wasm" cargo bench -p memhost-tests --bench pipeline

# The built-in provider's queries beside tantivy over the same records, which is built first.
bench-tantivy:
    cd tests/peer-tantivy && cargo build --release --locked
    MEMHOST_PEER_TANTIVY="{{justfile_directory()}}/tests/peer-tantivy/target/release/peer-tantivy" cargo bench -p memhost-tests --bench recall

# The same provider in Python, JavaScript and C, in target/examples; with `just examples c` only that one.
examples *LANGUAGES="python javascript c":
    for language in {{LANGUAGES}}; do plugins/examples/$language/build.sh || exit 1; done

# Size, admission and calls of those, beside the same provider in Rust.
bench-examples: examples
    cargo bench -p memhost-tests --bench examples

# Recall of a provider on a LoCoMo file.
eval FILE *ARGS:
    cargo run --release -- eval locomo {{FILE}} {{ARGS}}

# A host against its own OpenAPI document: schemathesis, in a pinned version, looks for any answer that is not in it.
schemathesis *ARGS:
    test -x target/venv/bin/schemathesis || (python3 -m venv target/venv && target/venv/bin/pip install --quiet -r tests/schemathesis/requirements.txt)
    cargo build --release -p memhost
    tests/schemathesis/run target/release/memhost target/venv/bin/schemathesis {{ARGS}}

# Every fuzz target for so many seconds each, from the seeds in tests/fuzz/corpus. What it finds stays in target/.
fuzz SECONDS="20":
    cargo fuzz --version > /dev/null || cargo install --locked cargo-fuzz
    for target in $(cargo fuzz list --fuzz-dir tests/fuzz); do mkdir -p target/fuzz-corpus/$target && cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none $target target/fuzz-corpus/$target $(ls -d tests/fuzz/corpus/$target 2> /dev/null) -- -max_total_time={{SECONDS}} || exit 1; done

# The explorer in a browser, with its pictures in target/tmp/browser. Needs node and Chromium.
browser:
    npm ci --silent --no-fund --no-audit --prefix tests/browser
    cargo test -p memhost-tests --test it browser:: -- --nocapture

# The plugin for Paperclip in a real Paperclip, which is installed first, with every process killed and in a browser.
paperclip *STEPS:
    npm ci --silent --no-fund --no-audit --prefix tests/browser
    npm ci --silent --no-fund --no-audit --prefix host/paperclip
    npm run --silent --prefix host/paperclip build
    cargo build -p memhost
    npm run --silent --prefix host/paperclip live -- {{STEPS}}
