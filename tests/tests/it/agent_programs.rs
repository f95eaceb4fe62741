//! The hooks, as the real Claude Code and Codex run them.

use std::process::Command;

use memhost_tests::{cache_dir, needed, repository};

/// What memory has of a session is what was said in it: by a program that runs one prompt, and by
/// a person at a terminal who types ahead, interrupts, meets an error of the service, and repeats
/// a decision.
#[test]
fn what_is_said_in_a_session_is_kept_with_its_question() {
    let programs = repository().join("target/agent-programs/node_modules/@openai/codex");
    let missing = "Claude Code and Codex are not installed; `tests/agent-hooks/real/install` \
                   installs them";
    if needed(programs.is_dir().then_some(()).ok_or(missing)).is_none() {
        return;
    }
    let ran = Command::new(repository().join("tests/agent-hooks/real/run"))
        .arg(env!("CARGO_BIN_EXE_memhost-cli"))
        .env("MEMHOST_CACHE_DIR", cache_dir())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("ok    codex: ends of sessions"), "{said}");
}
