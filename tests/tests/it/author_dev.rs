//! `memhost plugin dev`: a change is built and swapped in, what fails is said, and what serves goes
//! on.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use memhost_tests::stamped;
use serde_json::json;

use crate::cli::{TOKEN, Terminal, run, words};

/// The command at work, with what it says.
struct Dev {
    child: Child,
    lines: Receiver<String>,
}

impl Dev {
    fn start(project: &Path, environment: &[(&str, &str)], line: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memhost-cli"));
        for (name, _) in std::env::vars()
            .filter(|(name, _)| name.starts_with("MEMHOST_") || name.starts_with("XDG_"))
        {
            command.env_remove(name);
        }
        command.env("HOME", project).current_dir(project).envs(environment.iter().copied());
        let mut child = command
            .args(words(line))
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let out = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// Waits until it says something.
    fn says(&self, wanted: &str) -> String {
        let mut said = Vec::new();
        loop {
            match self.lines.recv_timeout(Duration::from_secs(60)) {
                Ok(line) if line.contains(wanted) => return line,
                Ok(line) => said.push(line),
                Err(_) => panic!("it never said `{wanted}`, only {said:#?}"),
            }
        }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write(project: &Path, version: &str) {
    let bytes = stamped(json!({"key": "stamped", "version": version, "traps": version == "9.0.0"}))
        .unwrap();
    std::fs::write(project.join("src/component"), bytes).unwrap();
}

const BUILD: &str = "plugin dev --build-command 'test ! -e src/broken && cp src/component \
                     out.wasm' --artifact out.wasm";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_is_built_and_served_by_a_host_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path();
    std::fs::create_dir(project.join("src")).unwrap();
    write(project, "1.0.0");
    let dev = Dev::start(project, &[], &format!("{BUILD} --listen 127.0.0.1:0"));
    let exported = dev.says("export MEMHOST_URL=");
    // What is printed into a pipe names the file of the token, for a shell.
    let token = std::fs::read_to_string(project.join("target/memhost-dev/operator-token")).unwrap();
    let pairs = exported.split_whitespace().filter_map(|pair| pair.split_once('='));
    let environment: Vec<(&str, &str)> = pairs
        .map(|(name, value)| (name, if name == "MEMHOST_TOKEN" { token.trim() } else { value }))
        .collect();
    dev.says("stamped 1.0.0");
    let search = async || run(project, &environment, &words("search anything -o json"), "").await;
    let found = search().await;
    assert!(found.code == 0 && found.out.contains("version 1.0.0"), "{found:?}");
    assert!(dev.says("query").contains("succeeded"));
    // A build that fails takes nothing away.
    std::fs::write(project.join("src/broken"), "").unwrap();
    write(project, "2.0.0");
    dev.says("the build failed");
    assert!(search().await.out.contains("version 1.0.0"));
    std::fs::remove_file(project.join("src/broken")).unwrap();
    assert!(dev.says("stamped 2.0.0").contains("serves the binding stamped"));
    assert!(search().await.out.contains("version 2.0.0"));
    // The host answers with the build before where a new one crashes: its author has to know.
    write(project, "9.0.0");
    dev.says("stamped 9.0.0");
    assert!(search().await.out.contains("version 2.0.0"));
    assert!(dev.says("went back to the previous build").contains("crashed"));
    assert!(project.join("target/memhost-dev/FORMAT").is_file());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_runs_takes_builds_over_and_says_why_it_does_not() {
    let terminal = Terminal::open(&[]).await;
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path();
    std::fs::create_dir(project.join("src")).unwrap();
    write(project, "1.0.0");
    let plugins = terminal.host.directory().join("plugins");
    let environment = [
        ("MEMHOST_URL", terminal.url.as_str()),
        ("MEMHOST_TOKEN", TOKEN),
        ("MEMHOST_COMPANY", "acme"),
    ];
    let dev = Dev::start(project, &environment, &format!("{BUILD} --into {}", plugins.display()));
    dev.says("stamped 1.0.0 (");
    assert!(plugins.join("out.wasm").is_file());
    terminal.fine("binding create held --provider stamped --versions '^1' --default").await;
    terminal.fine("search anything").await;
    write(project, "2.0.0");
    assert!(dev.says("stamped 2.0.0").contains("does not serve the binding held: 1.0.0 does"));
    write(project, "1.1.0");
    assert!(dev.says("stamped 1.1.0").contains("serves the binding held"));
    std::fs::write(project.join("src/component"), "no component").unwrap();
    dev.says("refuses the build");
    assert!(terminal.fine("search anything").await.contains("version 1.1.0"));
    // The reason for the file before is not the reason for this one.
    write(project, "1.2.0");
    assert!(dev.says("stamped 1.2.0").contains("serves the binding held"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_without_a_project_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refused = run(directory.path(), &[], &words("plugin dev --listen 127.0.0.1:0"), "").await;
    assert_eq!((refused.code, refused.err.contains("plugin new")), (2, true), "{refused:?}");
}
