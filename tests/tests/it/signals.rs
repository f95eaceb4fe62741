//! What `memhost serve` says of the signals that it gets.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn the_log_names_the_signal_that_ends_the_host_and_the_one_that_does_not() {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_memhost-cli"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("MEMHOST_")) {
        command.env_remove(name);
    }
    command.env("MEMHOST_CACHE_DIR", memhost_tests::cache_dir());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(home.path().join("data"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut host = command.spawn().unwrap();
    let pid = host.id().to_string();
    let send = |signal: &str| {
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
    };
    let mut out = BufReader::new(host.stdout.take().unwrap()).lines();
    assert!(out.any(|line| line.unwrap().contains("the explorer is at")));
    let mut log = BufReader::new(host.stderr.take().unwrap()).lines().map(Result::unwrap);
    send("-HUP");
    let said = log.find(|line| line.contains("SIGHUP")).expect("it ends without a word");
    assert!(said.contains("SIGHUP is ignored"), "{said}");
    send("-TERM");
    assert!(log.any(|line| line.contains("stopping: SIGTERM")));
    assert!(host.wait().unwrap().success());
}
