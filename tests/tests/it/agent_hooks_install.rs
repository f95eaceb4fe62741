//! Installing the hooks into the settings of Claude Code and Codex, and removing them again.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use memhost_tests::{Serving, TestHost};
use serde_json::{Value, json};

use super::agent_hooks::{Machine, files};
use super::mcp_http::{OPERATOR, token};

const SETTINGS: &str = "{\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": \
                        [\n            { \"hooks\": [ { \"type\": \"command\", \"command\": \"say \
                        done\" } ] }\n        ]\n    },\n    \"permissions\": { \"allow\": \
                        [\"Bash(npm test)\"] }\n}\n";

fn machine() -> Machine {
    Machine::new(format!("http://{}", SocketAddr::from((Ipv4Addr::LOCALHOST, 9))))
}

#[track_caller]
fn done(machine: &Machine, arguments: &[&str]) -> String {
    let called = machine.call(arguments, "");
    assert_eq!((called.code, called.errors.as_str()), (Some(0), ""), "{called:?}");
    called.out
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn uninstalling_restores_the_settings_byte_for_byte() {
    let machine = machine();
    let settings = machine.path(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, SETTINGS).unwrap();
    std::fs::set_permissions(&settings, std::fs::Permissions::from_mode(0o640)).unwrap();
    let shown = done(&machine, &["agent-hooks", "claude", "install", "--dry-run"]);
    assert!(
        shown.contains("+ ")
            && shown.contains("SessionStart")
            && shown.contains("nothing was written"),
        "{shown}"
    );
    assert_eq!(read(&settings), SETTINGS);
    done(
        &machine,
        &["agent-hooks", "claude", "install", "--company", "acme", "--recall", "prompts"],
    );
    let written: Value = serde_json::from_str(&read(&settings)).unwrap();
    let events: Vec<&String> = written["hooks"].as_object().unwrap().keys().collect();
    assert_eq!(events.len(), 9, "{events:?}");
    let stop = written["hooks"]["Stop"].as_array().unwrap();
    assert_eq!(stop[0]["hooks"][0]["command"], "say done", "another program's hook stays first");
    let line = stop[1]["hooks"][0]["command"].as_str().unwrap();
    // The environment of the hook may differ from this one.
    assert!(
        line.ends_with(
            "agent-hooks claude --url http://127.0.0.1:9 --company acme --recall prompts"
        ),
        "{line}"
    );
    assert!(!read(&settings).contains(&machine.token), "the token is not in it");
    assert_eq!(std::fs::metadata(&settings).unwrap().permissions().mode() & 0o777, 0o640);
    let backup = files(&machine.path("state/backups")).remove(0);
    assert_eq!(read(&backup), SETTINGS);
    assert_eq!(std::fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
    // Installing twice changes nothing. After an installation with other options, uninstalling
    // still restores the original.
    let again = done(
        &machine,
        &["agent-hooks", "claude", "install", "--company", "acme", "--recall", "prompts"],
    );
    assert!(again.contains("is up to date"), "{again}");
    done(&machine, &["agent-hooks", "claude", "install", "--company", "other"]);
    let again = read(&settings);
    assert!(again.contains("--company other") && !again.contains("--recall"), "{again}");
    done(&machine, &["agent-hooks", "claude", "uninstall"]);
    assert_eq!(read(&settings), SETTINGS);
    assert!(
        done(&machine, &["agent-hooks", "claude", "uninstall"]).contains("no hooks of memhost")
    );
}

#[test]
fn changes_made_after_the_installation_stay() {
    let machine = machine();
    let settings = machine.path("widgets/.claude/settings.local.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, SETTINGS).unwrap();
    done(&machine, &["agent-hooks", "claude", "install", "--scope", "local"]);
    let changed = read(&settings).replace("opus", "sonnet").replace("say done", "say finished");
    std::fs::write(&settings, changed).unwrap();
    done(&machine, &["agent-hooks", "claude", "uninstall", "--scope", "local"]);
    assert_eq!(
        read(&settings),
        SETTINGS.replace("opus", "sonnet").replace("say done", "say finished")
    );
}

#[test]
fn a_file_that_the_installation_created_is_removed_again() {
    let machine = machine();
    let hooks = machine.path(".codex/hooks.json");
    let told = done(&machine, &["agent-hooks", "codex", "install"]);
    assert!(told.contains("/hooks in Codex"), "{told}");
    let written: Value = serde_json::from_str(&read(&hooks)).unwrap();
    let events: Vec<&String> = written["hooks"].as_object().unwrap().keys().collect();
    assert_eq!(events.len(), 9, "{events:?}");
    assert_eq!(written["hooks"]["PreToolUse"][0]["hooks"][0]["type"], "command");
    assert_eq!(written["hooks"]["Stop"][0]["hooks"][0]["timeout"], 5);
    done(&machine, &["agent-hooks", "codex", "uninstall"]);
    assert!(!hooks.exists());
    // The command in the settings works.
    let line = written["hooks"]["SessionStart"][0]["hooks"][0]["command"].as_str().unwrap();
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", line])
        .env("HOME", machine.path(""))
        .env("MEMHOST_AGENT_HOOKS_STATE", machine.path("state"));
    shell.env("MEMHOST_URL", &machine.url).env("MEMHOST_COMPANY", "acme");
    let called = super::agent_hooks::run(shell, &machine.payload("codex", "session-start"));
    assert_eq!(
        (called.code, called.out.as_str(), called.errors.as_str()),
        (Some(0), "", ""),
        "{called:?}"
    );
    assert_eq!(machine.waiting(), 1);
}

#[test]
fn a_notify_program_is_added_beside_existing_settings() {
    let machine = machine();
    let config = machine.path(".codex/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let before = "# mine\nmodel = \"gpt-5.3-codex\"   # fast\n\n[tui]\nnotifications = true\n";
    std::fs::write(&config, before).unwrap();
    done(&machine, &["agent-hooks", "codex", "install", "--notify"]);
    assert!(
        read(&config).contains("\"codex\", \"notify\"") && read(&config).contains("# fast"),
        "{}",
        read(&config)
    );
    done(&machine, &["agent-hooks", "codex", "uninstall", "--notify"]);
    assert_eq!(read(&config), before);
    std::fs::write(&config, "notify = [\"terminal-notifier\"]\n").unwrap();
    let refused = machine.call(&["agent-hooks", "codex", "install", "--notify"], "");
    assert_eq!(refused.code, Some(2));
    assert!(refused.errors.contains("another program"), "{}", refused.errors);
    // Codex would not read it at another place.
    let refused =
        machine.call(&["agent-hooks", "codex", "install", "--notify", "--scope", "project"], "");
    assert_eq!(refused.code, Some(2));
}

#[test]
fn settings_that_cannot_be_read_are_not_changed() {
    let machine = machine();
    let settings = machine.path(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    for (text, error) in [
        ("{ // mine\n}", "not JSON"),
        ("[]", "no JSON object"),
        ("{\"hooks\": 1}", "not an object"),
    ] {
        std::fs::write(&settings, text).unwrap();
        let refused = machine.call(&["agent-hooks", "claude", "install"], "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.errors.contains(error), "{}", refused.errors);
        assert_eq!(read(&settings), text);
    }
    let mut nameless = machine.command(&["agent-hooks", "claude", "install"]);
    nameless.env_remove("MEMHOST_COMPANY");
    assert!(super::agent_hooks::run(nameless, "").errors.contains("--company"));
}

/// A host with an operator's token and an agent's: only the first may be warned of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_installation_warns_of_a_token_that_is_no_agents() {
    let host = TestHost::new(&[]).await.unwrap();
    let serving = Serving::start(&host, OPERATOR).await.unwrap();
    let ada = token(&host, "acme", json!({"name": "ada", "role": "agent", "agentId": "ada"})).await;
    let mut machine = Machine::new(serving.url().to_owned());
    machine.token = OPERATOR.to_owned();
    let install = ["agent-hooks", "claude", "install", "--company", "acme"];
    let said = done(&machine, &install);
    for wanted in [
        "no agent's",
        "memhost token create claude --role agent --agent claude --company acme",
        "MEMHOST_TOKEN=mh_… memhost agent-hooks claude install --company acme --save-token",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(
        !done(&machine, &["agent-hooks", "claude", "uninstall"]).contains("stays in"),
        "no token was saved"
    );
    machine.token = ada;
    let said = done(&machine, &install);
    assert!(!said.contains("no agent's"), "{said}");
    assert!(!done(&machine, &[&install[..], &["--save-token"]].concat()).contains("no agent's"));
    let said = done(&machine, &["agent-hooks", "claude", "uninstall"]);
    assert!(said.contains("stays in") && said.contains("agent-hooks.toml"), "{said}");
    serving.stop().await.unwrap();
}

#[test]
fn a_saved_token_is_readable_by_its_owner_only() {
    let machine = machine();
    let told = done(&machine, &["agent-hooks", "codex", "install", "--save-token"]);
    let file = machine.path(".config/memhost/agent-hooks.toml");
    assert!(told.contains("agent-hooks.toml") && !told.contains(&machine.token), "{told}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(read(&file).contains(&machine.token));
}
