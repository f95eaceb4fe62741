//! Hooks when something fails: they end soon, with success and without output for the model, and
//! their events are delivered later.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::agent_hooks::{Called, Machine, files, machine, serve, settle, tools as agent_tools};
use super::support::Api;

/// Much more than a hook needs, and less than a hook that waits for a host would take. The
/// benchmark has the figures.
const SOON: Duration = Duration::from_secs(20);

/// An address without a listener.
fn nowhere() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[track_caller]
fn is_well(called: &Called) {
    assert_eq!(
        (called.code, called.out.as_str(), called.errors.as_str()),
        (Some(0), "", ""),
        "{called:?}"
    );
    assert!(called.took < SOON, "{called:?}");
}

fn tool_use(machine: &Machine, number: u32) -> Called {
    let payload = machine
        .payload("claude", "pre-tool-use")
        .replace("toolu_01ABC123", &format!("toolu_{number:03}"));
    machine.call(&["agent-hooks", "claude"], &payload)
}

/// Waits until the log has a text, and until no process that delivers is left.
async fn logged(machine: &Machine, text: &str) {
    for _ in 0..6_000 {
        if machine.log().contains(text) && !machine.is_delivering() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{text} is not in the log: {}", machine.log());
}

async fn tools(api: &Api, count: usize) -> Vec<String> {
    let path = "/control/v1/companies/acme/events?limit=1000";
    let page = api.until(path, |page| page["items"].as_array().unwrap().len() >= count).await;
    let items = page["items"].as_array().unwrap().iter().rev();
    items.map(|event| event["details"]["toolUseId"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_a_host_missed_are_delivered_later_once_and_in_order() {
    let address = nowhere();
    let machine = Machine::new(format!("http://{address}"));
    is_well(&machine.call(&["agent-hooks", "claude"], &machine.payload("claude", "session-start")));
    for number in 0..20 {
        is_well(&tool_use(&machine, number));
    }
    logged(&machine, "cannot be reached").await;
    assert_eq!(machine.waiting(), 21);
    let private =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let spool = files(&machine.path("state/spool")).remove(0);
    let spooled = files(&spool)
        .into_iter()
        .find(|file| file.extension().is_some_and(|e| e == "json"))
        .unwrap();
    assert_eq!((private(&spool), private(&spooled)), (0o700, 0o600));
    assert!(
        !std::fs::read_to_string(&spooled).unwrap().contains(&machine.token),
        "no file contains the token"
    );
    let shown = machine.call(&["agent-hooks", "spool"], "");
    assert!(shown.out.lines().nth(1).unwrap().starts_with("21 "), "{}", shown.out);

    let host = TestHost::new(&[]).await.unwrap();
    serve(&host, address).await;
    let api = Api::new(&host);
    is_well(&tool_use(&machine, 20));
    settle(&machine, 0).await;
    let page = api.get("/control/v1/companies/acme/events?limit=1000").await;
    let items: Vec<_> = page["items"].as_array().unwrap().iter().rev().collect();
    assert_eq!(items[0]["type"], "session.started");
    let ids: Vec<&str> =
        items[1..].iter().map(|event| event["details"]["toolUseId"].as_str().unwrap()).collect();
    let wanted: Vec<String> = (0..=20).map(|number| format!("toolu_{number:03}")).collect();
    assert_eq!(ids, wanted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_hooks_at_once_lose_no_event() {
    let (_host, api, machine) = machine().await;
    std::thread::scope(|scope| {
        for lane in 0..8 {
            let machine = &machine;
            scope.spawn(move || {
                (0..8).for_each(|number| is_well(&tool_use(machine, lane * 8 + number)));
            });
        }
    });
    settle(&machine, 0).await;
    let mut ids = tools(&api, 64).await;
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 64);
}

#[test]
fn a_host_that_never_answers_does_not_delay_hooks() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let machine = Machine::new(format!("http://{}", listener.local_addr().unwrap()));
    let recalls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&recalls);
    std::thread::spawn(move || {
        // Accepts, reads, and does not answer.
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept() {
            let mut some = [0; 64];
            let read = stream.read(&mut some).unwrap_or(0);
            count.fetch_add(
                usize::from(String::from_utf8_lossy(&some[..read]).contains("/hooks ")),
                Ordering::Relaxed,
            );
            open.push(stream);
        }
    });
    let start = || {
        machine.call(
            &["agent-hooks", "claude", "--deadline-ms", "150"],
            &machine.payload("claude", "session-start"),
        )
    };
    let first = start();
    is_well(&first);
    assert!(
        first.took >= Duration::from_millis(100),
        "the first hook waited for the host: {first:?}"
    );
    assert_eq!(recalls.load(Ordering::Relaxed), 1);
    is_well(&start());
    is_well(&tool_use(&machine, 1));
    assert_eq!(recalls.load(Ordering::Relaxed), 1, "its circuit is open for a while");
    assert_eq!(machine.waiting(), 3, "nothing is lost");
}

#[test]
fn an_unusable_payload_is_ignored() {
    let machine = Machine::new(format!("http://{}", nowhere()));
    let good = machine.payload("claude", "stop");
    let deep = "[".repeat(100_000);
    for input in [
        "",
        "null",
        "[]",
        "{}",
        "not JSON",
        "{\"hook_event_name\":",
        "\u{0}\u{1}",
        &deep,
        &good[..good.len() / 2],
    ] {
        for tool in &agent_tools() {
            is_well(&machine.call(&["agent-hooks", tool], input));
            is_well(&machine.call(&["agent-hooks", tool, "notify", input.trim_matches('\0')], ""));
        }
    }
    // The usual exit code for a wrong command line would stop the tool.
    for line in [
        &["agent-hooks", "claude", "--no-such-flag"][..],
        &["agent-hooks", "codex", "--deadline-ms", "soon"],
    ] {
        is_well(&machine.call(line, &good));
    }
    let mut nameless = machine.command(&["agent-hooks", "claude"]);
    nameless.env_remove("MEMHOST_COMPANY");
    is_well(&super::agent_hooks::run(nameless, &good));
    assert_eq!(machine.waiting(), 0);
    let log = machine.log();
    for text in ["is not JSON", "not an event of a session", "--no-such-flag", "no company is set"]
    {
        assert!(log.contains(text), "{text}: {log}");
    }
    let mut odd = machine.command(&["agent-hooks", "claude"]);
    odd.env("MEMHOST_COMPANY", "acme/../other");
    is_well(&super::agent_hooks::run(odd, &good));
    assert_eq!(machine.waiting(), 0, "a company's id is not a path");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_lost_while_the_token_is_wrong() {
    let (_host, api, mut machine) = machine().await;
    let right = std::mem::replace(&mut machine.token, "mh_wrong".to_owned());
    is_well(&machine.call(&["agent-hooks", "claude"], &machine.payload("claude", "session-start")));
    is_well(&tool_use(&machine, 1));
    logged(&machine, "events stay in the spool: the host answers 401").await;
    assert!(!machine.log().contains("mh_wrong"), "{}", machine.log());
    assert_eq!(machine.waiting(), 2);
    // This time the token is in a file, which is used only if no other user can read it.
    let file = machine.path("agent-hooks.toml");
    std::fs::write(&file, format!("token = \"{right}\"\n")).unwrap();
    let flush = |mode: u32| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut command = machine.command(&[
            "agent-hooks",
            "spool",
            "--flush",
            "--config",
            file.to_str().unwrap(),
        ]);
        command.env_remove("MEMHOST_TOKEN");
        super::agent_hooks::run(command, "").out
    };
    assert!(flush(0o644).contains("other users can read"), "{}", machine.log());
    assert_eq!(machine.waiting(), 2);
    assert_eq!(flush(0o600), "2 delivered, 0 refused, 0 waiting\n");
    assert_eq!(
        api.get("/control/v1/companies/acme/events").await["items"].as_array().unwrap().len(),
        2
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tools_of_one_user_are_two_agents() {
    let address = nowhere();
    let mut machine = Machine::new(format!("http://{address}"));
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let file = machine.path("agent-hooks.toml");
    // Each is installed with a token of its own; the second does not replace the first.
    for (tool, agent) in [("claude", "ada"), ("codex", "bob")] {
        let body = json!({"name": agent, "role": "agent", "agentId": agent});
        let made = api.post("/control/v1/companies/acme/tokens", &body).await.fine();
        made["value"].as_str().unwrap().clone_into(&mut machine.token);
        let install =
            ["agent-hooks", tool, "install", "--save-token", "--config", file.to_str().unwrap()];
        let called = machine.call(&install, "");
        assert_eq!(called.code, Some(0), "{called:?}");
        let saved = std::fs::read_to_string(&file).unwrap();
        assert!(
            saved.contains(&format!("[tools.{tool}]")) && saved.contains(&machine.token),
            "{saved}"
        );
    }
    // Codex's events wait while there is no host, and Claude's hook is the first that runs when
    // there is one.
    let hook = |tool: &str| {
        let mut command =
            machine.command(&["agent-hooks", tool, "--config", file.to_str().unwrap()]);
        command.env_remove("MEMHOST_TOKEN");
        is_well(&super::agent_hooks::run(command, &machine.payload(tool, "session-start")));
    };
    hook("codex");
    logged(&machine, "cannot be reached").await;
    assert_eq!(machine.waiting(), 1);
    serve(&host, address).await;
    hook("claude");
    let principals = |page: &Value| {
        let items = page["items"].as_array().unwrap().iter();
        items
            .map(|event| format!("{} {}", event["agentKind"], event["principal"]))
            .collect::<Vec<_>>()
    };
    let path = "/control/v1/companies/acme/events?limit=1000";
    let first = api.until(path, |page| !page["items"].as_array().unwrap().is_empty()).await;
    assert_eq!(principals(&first), [r#""claude-code" "agent:ada""#]);
    hook("codex");
    let all = api.until(path, |page| page["items"].as_array().unwrap().len() >= 2).await;
    let of_codex = principals(&all).into_iter().filter(|who| who.contains("codex"));
    assert!(
        of_codex.clone().count() >= 1
            && of_codex.clone().all(|who| who.ends_with(r#""agent:bob""#)),
        "{all}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_spool_events_are_sent_at_once() {
    let (_host, api, machine) = machine().await;
    // This stands for a full disk: no directory can be created below a file.
    std::fs::write(machine.path("state"), "a file").unwrap();
    is_well(&tool_use(&machine, 1));
    assert_eq!(tools(&api, 1).await, ["toolu_001"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_spool_is_bounded_and_drops_the_oldest_events() {
    let address = nowhere();
    let machine = Machine::new(format!("http://{address}"));
    let config = machine.path("agent-hooks.toml");
    std::fs::write(&config, "spool_files = 3\n").unwrap();
    let call = |number: u32| {
        let mut command = machine.command(&["agent-hooks", "claude"]);
        command.env("MEMHOST_AGENT_HOOKS_CONFIG", &config);
        let payload = machine
            .payload("claude", "pre-tool-use")
            .replace("toolu_01ABC123", &format!("toolu_{number:03}"));
        is_well(&super::agent_hooks::run(command, &payload));
    };
    (0..8).for_each(call);
    logged(&machine, "cannot be reached").await;
    assert_eq!(machine.waiting(), 3);
    let shown = machine.call(&["agent-hooks", "spool"], "").out;
    let counts: Vec<&str> = shown.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((counts[0], counts[2]), ("3", "5"), "{shown}");
    let host = TestHost::new(&[]).await.unwrap();
    serve(&host, address).await;
    assert_eq!(
        machine.call(&["agent-hooks", "spool", "--flush"], "").out,
        "3 delivered, 0 refused, 0 waiting\n"
    );
    assert_eq!(tools(&Api::new(&host), 3).await, ["toolu_005", "toolu_006", "toolu_007"]);
    // Bytes are limited, too. A request has some hundreds.
    let gone = Machine::new(format!("http://{}", nowhere()));
    let config = gone.path("agent-hooks.toml");
    std::fs::write(&config, "spool_bytes = 4096\n").unwrap();
    for number in 0..30 {
        let mut command = gone.command(&["agent-hooks", "claude"]);
        command.env("MEMHOST_AGENT_HOOKS_CONFIG", &config);
        let payload = gone
            .payload("claude", "pre-tool-use")
            .replace("toolu_01ABC123", &format!("toolu_{number:03}"));
        is_well(&super::agent_hooks::run(command, &payload));
    }
    assert!((1..30).contains(&gone.waiting()), "{}", gone.waiting());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_the_host_refuses_does_not_block_the_others() {
    let (_host, api, machine) = machine().await;
    let bad = json!({
        "url": machine.url, "path": "/runtime/v1/companies/acme/events",
        "body": {"events": [{"type": "x"}]},
    });
    is_well(&tool_use(&machine, 1));
    settle(&machine, 0).await;
    let spool = files(&machine.path("state/spool")).remove(0);
    std::fs::write(spool.join("00000000000000000001-00000001-0000-100.json"), bad.to_string())
        .unwrap();
    std::fs::write(spool.join("00000000000000000002-00000001-0000-3.json"), "cut").unwrap();
    is_well(&tool_use(&machine, 2));
    settle(&machine, 0).await;
    assert_eq!(tools(&api, 2).await, ["toolu_001", "toolu_002"]);
    assert!(machine.log().contains("refuses an event with 400"), "{}", machine.log());
}

/// A token of an agent: its id and its value.
async fn token_of(api: &Api, agent: &str) -> (String, String) {
    let body = json!({"name": agent, "role": "agent", "agentId": agent});
    let made = api.post("/control/v1/companies/acme/tokens", &body).await.fine();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("id"), text("value"))
}

async fn rotate(api: &Api, id: &str) -> String {
    let path = format!("/control/v1/companies/acme/tokens/{id}/rotate");
    api.post(&path, &json!({})).await.fine()["value"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_outlive_the_token_that_they_were_made_with() {
    let (_host, api, mut machine) = machine().await;
    let (id, ada) = token_of(&api, "ada").await;
    let (_, bob) = token_of(&api, "bob").await;
    machine.token = ada;
    is_well(&tool_use(&machine, 1));
    settle(&machine, 0).await;
    let later = rotate(&api, &id).await;
    is_well(&tool_use(&machine, 2));
    logged(&machine, "events stay in the spool: the host answers 401").await;
    // Another agent on the same machine does not send what is not its own.
    machine.token = bob;
    is_well(&tool_use(&machine, 3));
    assert_eq!(tools(&api, 2).await, ["toolu_001", "toolu_003"]);
    settle(&machine, 1).await;
    let flushed = machine.call(&["agent-hooks", "spool", "--flush"], "");
    assert!(flushed.out.contains("they are of agent:ada"), "{}", flushed.out);
    assert_eq!(flushed.code, Some(1), "what waits is not delivered: {}", flushed.errors);
    machine.token = later;
    is_well(&tool_use(&machine, 4));
    settle(&machine, 0).await;
    let page = api.get("/control/v1/companies/acme/events?limit=1000").await;
    let items = page["items"].as_array().unwrap();
    let missed = items.iter().find(|event| event["details"]["toolUseId"] == "toolu_002");
    assert_eq!(missed.unwrap()["principal"], "agent:ada", "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_installation_left_is_delivered_by_hand_and_after_a_rotation() {
    let address = nowhere();
    let mut machine = Machine::new(format!("http://{address}"));
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let (id, value) = token_of(&api, "ada").await;
    machine.token = value;
    let install = ["agent-hooks", "claude", "install", "--company", "acme", "--save-token"];
    assert_eq!(machine.call(&install, "").code, Some(0));
    // From here on nothing is in the environment, as in a person's shell.
    let bare = |arguments: &[&str], input: &str| {
        let mut command = machine.command(arguments);
        for name in ["MEMHOST_URL", "MEMHOST_TOKEN", "MEMHOST_COMPANY", "MEMHOST_PROJECT"] {
            command.env_remove(name);
        }
        super::agent_hooks::run(command, input)
    };
    let hook = |number: u32| {
        let payload = machine
            .payload("claude", "pre-tool-use")
            .replace("toolu_01ABC123", &format!("toolu_{number:03}"));
        is_well(&bare(&["agent-hooks", "claude", "--company", "acme"], &payload));
    };
    hook(1);
    logged(&machine, "cannot be reached").await;
    serve(&host, address).await;
    let flush = || bare(&["agent-hooks", "spool", "--flush"], "").out;
    assert_eq!(flush(), "1 delivered, 0 refused, 0 waiting\n");
    let later = rotate(&api, &id).await;
    hook(2);
    logged(&machine, "the host answers 401").await;
    let file = machine.path(".config/memhost/agent-hooks.toml");
    let saved = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, saved.replace(&machine.token, &later)).unwrap();
    hook(3);
    settle(&machine, 0).await;
    assert_eq!(tools(&api, 3).await, ["toolu_001", "toolu_003", "toolu_002"]);
}

/// The command line of a hook has settings that a person's shell does not have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_installed_with_flags_is_delivered_by_hand_without_them() {
    let address = nowhere();
    let mut machine = Machine::new(format!("http://{address}"));
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    machine.token = token_of(&api, "ada").await.1;
    let url = format!("http://{address}");
    let own = machine.path("own.toml").display().to_string();
    let install =
        ["agent-hooks", "claude", "install", "--company", "acme", "--save-token", "--config", &own];
    assert_eq!(machine.call(&install, "").code, Some(0));
    let call = |arguments: &[&str], input: &str, has_token: bool| {
        let mut command = machine.command(arguments);
        for name in ["MEMHOST_URL", "MEMHOST_COMPANY", "MEMHOST_PROJECT"] {
            command.env_remove(name);
        }
        if !has_token {
            command.env_remove("MEMHOST_TOKEN");
        }
        super::agent_hooks::run(command, input)
    };
    let payload = machine.payload("claude", "pre-tool-use");
    for (flags, has_token) in [(["--config", own.as_str()], false), (["--url", &url], true)] {
        let hook = [&["agent-hooks", "claude", "--company", "acme"], &flags[..]].concat();
        is_well(&call(&hook, &payload, has_token));
        logged(&machine, "cannot be reached").await;
        std::fs::remove_file(machine.path("state/agent-hooks.log")).unwrap();
    }
    serve(&host, address).await;
    // Both have one token, and the settings file of the first has it.
    let flushed = call(&["agent-hooks", "spool", "--flush"], "", false).out;
    assert!(flushed.contains("2 delivered, 0 refused, 0 waiting\n"), "{flushed}");
    assert_eq!(machine.waiting(), 0);
}
