//! The hooks of agent tools: every recorded payload is piped into the program, and the host must
//! have its event afterwards. `tests/agent-hooks/README.md` names the sources of the payloads.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use memhost_server::{self as server, AdminToken};
use memhost_tests::{TestHost, repository};
use serde_json::{Value, json};

use super::support::Api;

const TOKEN: &str = "a-token-of-sixteen-characters-or-more";
const PROGRAM: &str = env!("CARGO_BIN_EXE_memhost-cli");

/// A person's machine: a home directory, a project, and the address of a host, which may not run.
pub(crate) struct Machine {
    directory: tempfile::TempDir,
    pub(crate) url: String,
    pub(crate) token: String,
}

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) errors: String,
    pub(crate) took: Duration,
}

impl Machine {
    pub(crate) fn new(url: String) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("widgets")).unwrap();
        Self { directory, url, token: TOKEN.to_owned() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// One of the recorded payloads, with this machine's paths.
    pub(crate) fn payload(&self, tool: &str, name: &str) -> String {
        let recorded = repository().join("tests/agent-hooks").join(tool);
        let transcript = self.path(&format!("{tool}.jsonl"));
        if !transcript.exists() {
            std::fs::copy(recorded.join("transcript.jsonl"), &transcript).unwrap();
        }
        let text = std::fs::read_to_string(recorded.join(format!("{name}.json"))).unwrap();
        text.replace("/TRANSCRIPT", transcript.to_str().unwrap())
            .replace("/PROJECT", self.path("widgets").to_str().unwrap())
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.directory.path())
            .env("MEMHOST_AGENT_HOOKS_STATE", self.path("state"))
            .env("MEMHOST_URL", &self.url)
            .env("MEMHOST_TOKEN", &self.token)
            .env("MEMHOST_COMPANY", "acme")
            .env("MEMHOST_PROJECT", "widgets")
            .current_dir(self.path("widgets"));
        command
    }

    /// Runs the program on an input.
    pub(crate) fn call(&self, arguments: &[&str], input: &str) -> Called {
        run(self.command(arguments), input)
    }

    /// Runs a hook on a recorded payload. It must succeed.
    pub(crate) fn hook(&self, tool: &str, name: &str) -> String {
        let called = self.call(&["agent-hooks", tool], &self.payload(tool, name));
        assert_eq!(
            (called.code, called.errors.as_str()),
            (Some(0), ""),
            "{tool}/{name}: {called:?}"
        );
        called.out
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path("state/agent-hooks.log")).unwrap_or_default()
    }

    /// Whether a process of this machine runs: on Linux by its environment, elsewhere by the lock
    /// of a spool.
    pub(crate) fn is_delivering(&self) -> bool {
        let state = format!("MEMHOST_AGENT_HOOKS_STATE={}", self.path("state").display());
        if cfg!(target_os = "linux") {
            return std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
                let Ok(environment) = std::fs::read(process.path().join("environ")) else {
                    return false;
                };
                // Between its start and its first instruction, a program has a name and no
                // environment yet.
                let is_ours =
                    |program: PathBuf| program.file_name() == Path::new(PROGRAM).file_name();
                match environment.is_empty() {
                    true => process.path().join("exe").read_link().is_ok_and(is_ours),
                    false => environment
                        .split(|byte| *byte == 0)
                        .any(|variable| variable == state.as_bytes()),
                }
            });
        }
        files(&self.path("state/spool")).iter().any(|spool| {
            std::fs::File::open(spool.join("lock")).is_ok_and(|lock| lock.try_lock().is_err())
        })
    }

    /// How many events wait in the spool.
    pub(crate) fn waiting(&self) -> usize {
        let spools = std::fs::read_dir(self.path("state/spool")).into_iter().flatten().flatten();
        let files = spools.flat_map(|spool| std::fs::read_dir(spool.path()).unwrap().flatten());
        files.filter(|file| file.file_name().to_string_lossy().ends_with(".json")).count()
    }
}

pub(crate) fn run(mut command: Command, input: &str) -> Called {
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that reads no input closes it, and writing fails.
    let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Called {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
        took: started.elapsed(),
    }
}

/// Serves a host on an address until the test ends.
pub(crate) async fn serve(host: &TestHost, address: SocketAddr) -> SocketAddr {
    let endpoint = server::Endpoint::bind(&address.into(), server::Surfaces::All).await.unwrap();
    let server::Address::Tcp(address) = *endpoint.address() else { panic!("it has a port") };
    let token = AdminToken::known(TOKEN).unwrap();
    tokio::spawn(server::run(
        vec![endpoint],
        Arc::clone(host.service()),
        token,
        memhost_server::ServerOptions::default(),
        std::future::pending(),
    ));
    address
}

pub(crate) async fn machine() -> (TestHost, Api, Machine) {
    let host = TestHost::new(&[]).await.unwrap();
    let address = serve(&host, ([127, 0, 0, 1], 0).into()).await;
    let (api, machine) = (Api::new(&host), Machine::new(format!("http://{address}")));
    // A recall that is too late is omitted, which another test covers. Here it may take long.
    std::fs::create_dir_all(machine.path(".config/memhost")).unwrap();
    std::fs::write(machine.path(".config/memhost/agent-hooks.toml"), "deadline_ms = 30000\n")
        .unwrap();
    (host, api, machine)
}

/// Waits until this many events wait in the spool.
pub(crate) async fn settle(machine: &Machine, waiting: usize) {
    for _ in 0..6_000 {
        if machine.waiting() == waiting {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} wait: {}", machine.waiting(), machine.log());
}

/// The events that the host knows, oldest first, once there are `count`.
async fn known(api: &Api, count: usize) -> Vec<Value> {
    let events = api
        .until("/control/v1/companies/acme/events?limit=1000", |page| {
            page["items"].as_array().unwrap().len() >= count
        })
        .await;
    let mut events = events["items"].as_array().unwrap().clone();
    events.reverse();
    events
}

async fn captures(api: &Api, count: usize) -> Vec<Value> {
    let path = "/control/v1/companies/acme/deliveries?hookKind=post_run_capture&limit=1000";
    let page = api.until(path, |page| page["items"].as_array().unwrap().len() >= count).await;
    page["items"].as_array().unwrap().clone()
}

/// The tools with recorded payloads.
pub(crate) fn tools() -> Vec<String> {
    let entries =
        std::fs::read_dir(repository().join("tests/agent-hooks")).unwrap().map(Result::unwrap);
    let mut tools: Vec<String> = entries
        .filter(|entry| entry.path().join("expected.json").exists())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    tools.sort();
    assert!(tools.len() >= 2, "{tools:?}");
    tools
}

/// The name of a tool's agent in events and records.
pub(crate) fn agent_kind(tool: &str) -> &str {
    if tool == "claude" { "claude-code" } else { tool }
}

/// The payloads of a tool in the order of `expected.json`, each with the event that the host must
/// get, if any.
fn expected(tool: &str) -> Vec<(String, Option<String>)> {
    let path = repository().join("tests/agent-hooks").join(tool).join("expected.json");
    let rows: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    rows.iter().map(|row| (text(&row["payload"]).unwrap(), text(&row["event"]))).collect()
}

/// The recorded payloads of hook events. A payload of a `notify` program has a test of its own.
fn recorded(tool: &str) -> Vec<String> {
    let files = std::fs::read_dir(repository().join("tests/agent-hooks").join(tool)).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned())).collect();
    names.retain(|name| name != "notify" && name != "expected");
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_recorded_hook_reports_what_is_expected() {
    for tool in &tools() {
        let rows = expected(tool);
        let mut named: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        named.sort_unstable();
        assert_eq!(named, recorded(tool), "expected.json has every payload");
        let (_host, api, machine) = machine().await;
        for (name, _) in &rows {
            // There is nothing to recall, and the tool would interpret any output.
            assert_eq!(machine.hook(tool, name), "", "{tool}/{name}");
        }
        let wanted: Vec<&str> = rows.iter().filter_map(|(_, event)| event.as_deref()).collect();
        let events = known(&api, wanted.len()).await;
        let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(types, wanted, "{tool}");
        for event in &events {
            assert_eq!(
                (&event["projectId"], &event["agentKind"]),
                (&json!("widgets"), &json!(agent_kind(tool)))
            );
            assert!(
                event["occurredAt"].is_string() && event["details"]["hookEvent"].is_string(),
                "{event}"
            );
        }
        // The end of the turn, before compaction, the end of the session: one exchange, captured
        // once.
        let path = "/control/v1/companies/acme/deliveries?hookKind=post_run_capture";
        api.until(path, |page| page["items"][0]["status"] == "delivered").await;
        let captured = captures(&api, 1).await;
        assert_eq!(captured.len(), 1, "{captured:?}");
        assert!(captured[0].get("metadata").is_none(), "the provider has it: {}", captured[0]);
        let all = json!({"scope": {"companyId": "acme"}});
        let records = api.post("/runtime/v1/companies/acme/list", &all).await.fine();
        assert_eq!(records["items"][0]["metadata"]["agentKind"], agent_kind(tool), "{records}");
        assert_eq!(captured[0]["scope"]["projectId"], "widgets");
        settle(&machine, 0).await;
        assert_eq!(machine.log(), "");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_tool_call_has_status_and_duration() {
    let (_host, api, machine) = machine().await;
    machine.hook("claude", "pre-tool-use");
    tokio::time::sleep(Duration::from_millis(30)).await;
    machine.hook("claude", "post-tool-use-failure");
    machine.hook("claude", "post-tool-use");
    // Each tool has a spool of its own, and nothing orders the two.
    settle(&machine, 0).await;
    machine.hook("codex", "post-tool-use-failed");
    let events = known(&api, 4).await;
    assert_eq!((&events[1]["toolId"], &events[1]["status"]), (&json!("Bash"), &json!("failed")));
    assert_eq!(events[1]["error"], "Command exited with non-zero status code 1");
    // The payload has no duration. The call began when its first hook ran.
    assert!((20..10_000).contains(&events[1]["durationMs"].as_u64().unwrap()), "{}", events[1]);
    assert_eq!((&events[2]["durationMs"], &events[2]["status"]), (&json!(12), &json!("succeeded")));
    assert_eq!(events[3]["error"], "exit code 1");
    assert_eq!(events[3]["details"]["toolUseId"], "call_Qq9k");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recall_is_printed_in_the_form_that_the_tool_reads() {
    let (_host, api, machine) = machine().await;
    let note = json!({
        "scope": {"companyId": "acme"},
        "records": [{"text": "widgets: deploys are frozen on Fridays"}],
    });
    api.post("/runtime/v1/companies/acme/records", &note).await.fine();
    for tool in &tools() {
        let printed = machine.hook(tool, "session-start");
        let printed: Value = serde_json::from_str(&printed).unwrap();
        let output = &printed["hookSpecificOutput"];
        assert_eq!(printed.as_object().unwrap().len(), 1, "{printed}");
        assert_eq!(output["hookEventName"], "SessionStart");
        assert!(
            output["additionalContext"].as_str().unwrap().contains("frozen on Fridays"),
            "{printed}"
        );
        // Recall for prompts is off unless it is configured.
        assert_eq!(machine.hook(tool, "user-prompt-submit"), "");
        let payload = machine.payload(tool, "user-prompt-submit");
        let mut payload: Value = serde_json::from_str(&payload).unwrap();
        payload["prompt"] = json!("When may I deploy widgets?");
        let payload = payload.to_string();
        let called = machine.call(&["agent-hooks", tool, "--recall", "prompts"], &payload);
        let printed: Value = serde_json::from_str(&called.out).unwrap();
        assert_eq!(printed["hookSpecificOutput"]["hookEventName"], "UserPromptSubmit");
        let called = machine.call(
            &["agent-hooks", tool, "--recall", "off"],
            &machine.payload(tool, "session-start"),
        );
        assert_eq!((called.code, called.out.as_str()), (Some(0), ""));
    }
    // Claude Code drops the recalled text when it shortens a session, so recall runs again.
    assert!(machine.hook("claude", "session-start-compact").contains("frozen on Fridays"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_is_reported_twice_is_stored_once() {
    let (_host, api, machine) = machine().await;
    for _ in 0..2 {
        machine.hook("codex", "pre-tool-use");
        machine.hook("codex", "stop");
    }
    // Codex's older notification describes the same turn.
    let called =
        machine.call(&["agent-hooks", "codex", "notify", &machine.payload("codex", "notify")], "");
    assert_eq!((called.code, called.out.as_str(), called.errors.as_str()), (Some(0), "", ""));
    settle(&machine, 0).await;
    assert_eq!(known(&api, 2).await.len(), 2);
    let captured = captures(&api, 1).await;
    assert_eq!(captured.len(), 1, "{captured:?}");
    let delivery =
        format!("/control/v1/companies/acme/deliveries/{}", captured[0]["id"].as_str().unwrap());
    api.until(&delivery, |delivery| delivery["status"] == "delivered").await;
    let found = api.query("acme", "rename foo").await;
    assert!(found.iter().any(|text| text.contains("User: Rename `foo`")), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paperclip_run_is_reported_with_its_run_id() {
    let (_host, api, machine) = machine().await;
    let mut command = machine.command(&["agent-hooks", "claude"]);
    command.env_remove("MEMHOST_COMPANY").envs([
        ("PAPERCLIP_COMPANY_ID", "acme"),
        ("PAPERCLIP_AGENT_ID", "ada"),
        ("PAPERCLIP_RUN_ID", "run-7"),
        ("PAPERCLIP_TASK_ID", "issue-9"),
    ]);
    assert_eq!(run(command, &machine.payload("claude", "session-end")).code, Some(0));
    let event = known(&api, 1).await.remove(0);
    assert_eq!((&event["agentId"], &event["runId"]), (&json!("ada"), &json!("run-7")), "{event}");
    let captured = captures(&api, 1).await.remove(0);
    let scope = json!({
        "companyId": "acme", "agentId": "ada", "projectId": "widgets", "issueId": "issue-9",
        "runId": "run-7", "sessionKey": "00893aaf-19fa-41d2-8238-13269b9b3ca0",
    });
    assert_eq!(captured["scope"], scope);
    assert_eq!(
        (&captured["source"]["kind"], &captured["source"]["runId"]),
        (&json!("run"), &json!("run-7"))
    );
}

/// The files of a directory, by name.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .map(|file| file.unwrap().path())
        .collect();
    all.sort();
    all
}
