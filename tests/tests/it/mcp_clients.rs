//! `memhost mcp` as a program, and the official Python SDK as a foreign client, over both
//! transports.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use memhost_tests::{TestHost, needed, repository};
use serde_json::{Value, json};

use crate::mcp_http::{listening, listening_on, token};
use crate::support::Api;

/// A running `memhost mcp`.
struct Bridge {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Bridge {
    fn start(arguments: &[&str], token: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memhost-cli"));
        command
            .arg("mcp")
            .args(arguments)
            .env("MEMHOST_TOKEN", token)
            .env_remove("MEMHOST_COMPANY");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("no message: {line:?}: {error}"))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.write(
            &json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string(),
        );
        let answer = self.read();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)), "{answer}");
        answer
    }

    fn hello(&mut self) -> Value {
        let client = json!({"name": "a client", "version": "3"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        self.ask("initialize", &params)
    }

    /// Ends the input, which ends the program, and checks that nothing else was written.
    fn end(mut self) {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_line(&mut rest).unwrap();
        assert_eq!((rest.as_str(), self.child.wait().unwrap().code()), ("", Some(0)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memhost_mcp_forwards_messages_only() {
    let host = TestHost::new(&[]).await.unwrap();
    let address = listening(host.service()).await;
    let token =
        token(&host, "acme", json!({"name": "ada", "role": "agent", "agentId": "ada"})).await;
    let url = format!("http://{address}");
    tokio::task::spawn_blocking(move || {
        let mut bridge = Bridge::start(&["--url", &url, "--run", "rün/7"], &token);
        assert_eq!(bridge.hello()["result"]["protocolVersion"], "2025-06-18");
        bridge.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        bridge.write("");
        bridge.write("no json");
        assert_eq!(bridge.read()["error"]["code"], -32700);
        bridge.write(&"x".repeat(9 << 20));
        assert_eq!(bridge.read()["error"]["code"], -32700);
        let refused =
            bridge.ask("tools/call", &json!({"name": "memory_note", "arguments": {"text": "x"}}));
        assert_eq!(refused["result"]["isError"], true, "a run's id has no `/`: {refused}");
        bridge.end();
        let mut bridge = Bridge::start(&["--url", &url, "--run", "rün 7"], &token);
        bridge.hello();
        // Two at once. Each is answered under its own id.
        for (id, text) in [("a", "the first"), ("b", "the second")] {
            let params = json!({"name": "memory_note", "arguments": {"text": text}});
            bridge.write(
                &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
                    .to_string(),
            );
        }
        let mut ids =
            [bridge.read(), bridge.read()].map(|answer| answer["id"].as_str().unwrap().to_owned());
        ids.sort();
        assert_eq!(ids, ["a", "b"]);
        // The revision without a handshake needs parts of the body in headers, in ASCII.
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let read = json!({"uri": "memory://local-markdown/ü", "_meta": meta});
        let answer = bridge.ask("resources/read", &read);
        assert!(answer["error"]["message"].as_str().unwrap().contains("no record"), "{answer}");
        let call = json!({"name": "memory_search", "arguments": {"query": "first"}, "_meta": meta});
        let answer = bridge.ask("tools/call", &call);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        bridge.end();
    })
    .await
    .unwrap();
    let log = host.operations("acme").await.unwrap();
    let via = |index: usize| log[index].source.as_ref().unwrap().external_ref.clone().unwrap();
    assert_eq!((via(0).as_str(), via(2).as_str()), ("mcp:modern/1", "mcp:a client/3"));
    assert_eq!(log[2].scope.run_id.as_deref(), Some("rün 7"));
}

/// A client asks for the server and its tools once, when it starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_starts_before_the_host_works_once_it_is_there() {
    let host = TestHost::new(&[]).await.unwrap();
    host.write("acme", "the gate code changes monthly").await.unwrap();
    let token =
        token(&host, "acme", json!({"name": "ada", "role": "agent", "agentId": "ada"})).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let search = json!({"name": "memory_search", "arguments": {"query": "gate code"}});
    let url = format!("http://{address}");
    let asked = search.clone();
    let mut bridge = tokio::task::spawn_blocking(move || {
        let mut bridge = Bridge::start(&["--url", &url], &token);
        let hello = bridge.hello()["result"].clone();
        assert_eq!(hello["protocolVersion"], "2025-06-18", "{hello}");
        assert_eq!(hello["serverInfo"]["name"], "memhost");
        assert_eq!(hello["capabilities"]["tools"]["listChanged"], true);
        let tools = bridge.ask("tools/list", &json!({}));
        assert_eq!(tools["result"]["tools"][0]["name"], "memory_search", "{tools}");
        for list in ["resources", "prompts"] {
            let listed = bridge.ask(&format!("{list}/list"), &json!({}));
            assert!(listed["result"][list].is_array(), "{listed}");
        }
        let call = bridge.ask("tools/call", &asked);
        let text = call["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(call["result"]["isError"] == true && text.starts_with("unavailable: "), "{call}");
        assert!(text.contains("memhost serve"), "{call}");
        let read = bridge.ask("resources/read", &json!({"uri": "memory://p/r"}));
        assert_eq!(read["error"]["code"], -32000, "{read}");
        bridge.write(
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"b","method":"x"}]"#,
        );
        let batch = bridge.read();
        assert_eq!((&batch[0]["id"], &batch[1]["id"]), (&json!(1), &json!("b")), "{batch}");
        bridge
    })
    .await
    .unwrap();
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    listening_on(host.service(), listener);
    tokio::task::spawn_blocking(move || {
        let call = bridge.ask("tools/call", &search);
        let records = &call["result"]["structuredContent"]["records"];
        assert_eq!(records[0]["text"], "the gate code changes monthly", "{call}");
        // The client was told of tools without the host, so it is to ask again.
        assert_eq!(bridge.read()["method"], "notifications/tools/list_changed");
        let tools = bridge.ask("tools/list", &json!({}));
        assert!(tools["result"]["tools"].is_array(), "{tools}");
        bridge.end();
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_serves_without_a_host() {
    let mut host = TestHost::new(&[]).await.unwrap();
    host.write("acme", "the gate code changes monthly").await.unwrap();
    host.stop().await;
    let directory = host.data_dir().to_str().unwrap().to_owned();
    tokio::task::spawn_blocking(move || {
        let mut bridge =
            Bridge::start(&["--data-dir", &directory, "--company", "acme"], "unused-but-set");
        assert_eq!(bridge.hello()["result"]["serverInfo"]["name"], "memhost");
        let call = bridge.ask(
            "tools/call",
            &json!({"name": "memory_search", "arguments": {"query": "gate code"}}),
        );
        let records = call["result"]["structuredContent"]["records"].as_array().unwrap();
        assert_eq!(records[0]["text"], "the gate code changes monthly");
        bridge.end();
    })
    .await
    .unwrap();
}

/// A Python with the SDK: the named one, that of `target/venv`, or the one on the path.
fn python() -> Result<PathBuf, String> {
    let has_sdk = |python: &PathBuf| {
        let tried = Command::new(python)
            .args(["-c", "import mcp.client, httpx2, jsonschema"])
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|status| status.success())
    };
    if let Some(named) = std::env::var_os("MEMHOST_PYTHON").map(PathBuf::from) {
        assert!(
            has_sdk(&named),
            "MEMHOST_PYTHON is {}, and that cannot `import mcp`",
            named.display()
        );
        return Ok(named);
    }
    let candidates = [repository().join("target/venv/bin/python"), PathBuf::from("python3")];
    let advice = "no Python here has the SDK; `python3 -m venv target/venv && target/venv/bin/pip \
                  install -r \
                  tests/mcp/requirements.txt` makes one";
    candidates.into_iter().find(has_sdk).ok_or_else(|| advice.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_sdk_finds_everything_in_order() {
    let Some(python) = needed(python()) else { return };
    let host = TestHost::new(&[]).await.unwrap();
    let policy = json!({"mcp": {"aliases": true}});
    let binding =
        json!({"key": "m", "providerKey": "local-markdown", "default": true, "policy": policy});
    Api::new(&host).post("/control/v1/companies/acme/bindings", &binding).await.fine();
    // More than one page of resources.
    let texts: Vec<String> = (0..60).map(|n| format!("fact number {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let written = memhost_tests::upsert("acme", &texts);
    host.service().operations().upsert(&memhost_tests::caller(), written).await.unwrap();
    let url = format!("http://{}", listening(host.service()).await);
    let token =
        token(&host, "acme", json!({"name": "ada", "role": "agent", "agentId": "ada"})).await;
    let program = env!("CARGO_BIN_EXE_memhost-cli");
    for arguments in [
        vec!["http", &url, &token],
        vec!["stdio", &token, program, "mcp", "--url", &url, "--session", "s 1"],
    ] {
        let script = repository().join("tests/mcp/client.py");
        let mut command = Command::new(&python);
        command.arg(script).args(&arguments);
        let done = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && out.ends_with("all  held\n"), "{out}\n{err}");
    }
}
