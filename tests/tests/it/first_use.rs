//! What somebody meets who uses a host for the first time.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use memhost_server::Method;
use serde_json::{Value, json};

use super::cli::{TOKEN, Terminal, run, words};
use super::support::Api;

/// The second terminal of the quick start is there before the host listens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_says_that_it_starts_and_another_terminal_to_wait() {
    let home = tempfile::tempdir().unwrap();
    let early = run(home.path(), &[], &words("context update --company acme"), "").await;
    assert_eq!(early.code, 2, "{early:?}");
    assert!(early.err.contains("still starting, wait until it says `listening`"), "{early:?}");
    for (does, arguments) in [
        ("memhost is starting: it makes data, and then says `listening`", &[] as &[&str]),
        ("memhost is starting: it opens data", &[]),
        ("", &["--print-address", "json"]),
    ] {
        let mut serve = Command::new(env!("CARGO_BIN_EXE_memhost-cli"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"])
            .args(arguments)
            .env("HOME", home.path())
            .env("MEMHOST_CACHE_DIR", memhost_tests::cache_dir())
            .current_dir(home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(serve.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("http://127.0.0.1") {
            assert_ne!(out.read_line(&mut line).unwrap(), 0, "{line}");
        }
        serve.kill().unwrap();
        let mut said = String::new();
        serve.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        serve.wait().unwrap();
        assert!(said.contains(does), "{said}");
        assert_eq!(said.contains("is starting"), arguments.is_empty(), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_range_goes_to_the_one_address_that_is_meant() {
    let terminal = Terminal::open(&["mem0"]).await;
    let config = r#"{"url":"http://10.0.0.5:8000","api":"self-hosted"}"#;
    std::fs::write(terminal.home.path().join("config.json"), config).unwrap();
    terminal.fine("binding create mem0 --provider mem0 --config @config.json").await;
    let alone = terminal.run("binding grant mem0 --private-range 10.0.0.0/8").await;
    assert_eq!(alone.code, 2, "{alone:?}");
    let wanted = "write `--http http://10.0.0.5:8000 --private-range 10.0.0.0/8`";
    assert!(alone.err.contains(wanted), "{alone:?}");
    let ranges = async || {
        let grants = terminal.json("binding show mem0").await["grants"]["http"].clone();
        assert_eq!(grants.as_array().unwrap().len(), 1, "{grants}");
        grants[0]["privateRanges"].clone()
    };
    terminal.fine("binding grant mem0 --everything --private-range 10.0.0.0/8").await;
    assert_eq!(ranges().await, json!(["10.0.0.0/8"]));
    terminal.fine("binding grant mem0 --private-range 10.0.0.0/8 --private-range fd00::/8").await;
    assert_eq!(ranges().await, json!(["10.0.0.0/8", "fd00::/8"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_makes_a_company_says_so() {
    let terminal = Terminal::open(&[]).await;
    std::fs::write(terminal.home.path().join("key"), "a-key-of-the-test").unwrap();
    let secret = "secret create K --origin https://a.example --as header:x-key --value-file key";
    for (company, line) in [
        ("acmme", "note x"),
        ("globex", secret),
        ("initech", "token create t --role auditor"),
        ("umbrella", "binding create b"),
        ("hooli", "capture x"),
    ] {
        let line = format!("{line} --company {company}");
        let first = terminal.run(&line).await;
        assert_eq!(first.code, 0, "{line}: {first:?}");
        assert_eq!(first.err, format!("created company {company}\n"), "{line}");
        let list = terminal.json("company list").await;
        assert!(list["items"].as_array().unwrap().contains(&json!(company)), "{line}: {list}");
    }
    let again = terminal.run("note y --company acmme").await;
    assert_eq!((again.code, again.err.as_str()), (0, ""), "{again:?}");
    // Who may not list companies is not refused anything by asking.
    let agent = Api::new(&terminal.host).agent("ada").await;
    let noted = terminal.run(&format!("note z --token {}", agent.token())).await;
    assert_eq!((noted.code, noted.err.as_str()), (0, ""), "{noted:?}");
    let refused = terminal.json("operation list --outcome refused").await;
    assert_eq!(refused["items"], json!([]), "{refused}");
    // Nothing is said to be made that is not.
    let refused = terminal.run("note '' --company other").await;
    assert!(refused.code == 2 && !refused.err.contains("created"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_deleted_and_rotated_by_its_name() {
    let terminal = Terminal::open(&[]).await;
    let create = async || terminal.json("token create quinn --role auditor").await;
    create().await;
    terminal.fine("token rotate quinn").await;
    let deleted = terminal.fine("token delete quinn").await;
    assert!(deleted.contains("quinn"), "{deleted}");
    let ids = [create().await, create().await].map(|made| made["id"].clone());
    let several = terminal.run("token delete quinn").await;
    assert_eq!(several.code, 2, "{several:?}");
    for id in &ids {
        assert!(several.err.contains(id.as_str().unwrap()), "{several:?} {id}");
    }
    let value = terminal.run("token delete mh_FlDJvPhbSecret").await;
    assert!(value.code == 2 && !value.err.contains("FlDJ"), "{value:?}");
    terminal.fine(&format!("token delete {}", ids[0].as_str().unwrap())).await;
    terminal.fine("token delete quinn").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_that_are_none_are_told_their_form() {
    let terminal = Terminal::open(&[]).await;
    let api = Api::new(&terminal.host);
    let detail = async |path: &str| -> Value {
        let path = format!("/control/v1/companies/acme/{path}");
        let answer = api.send(Method::Get, &path, None, &[]).await;
        assert_eq!(answer.status, 400, "{path}");
        answer.json["detail"].clone()
    };
    let day = "since: is no day; write it like 2026-11-20";
    let time = "since: is no time; write it like 2026-11-20T10:00:00Z";
    for (path, wanted) in [
        ("costs?since=2026-11-20T00:00:00Z", day),
        ("costs?since=yesterday", day),
        ("evaluation?since=x", day),
        ("outgoing?since=x", day),
        ("operations?since=yesterday", time),
        ("operations?since=2026-11-20", time),
        ("events?since=x", time),
        ("operations?limit=x", "limit: is no whole number"),
    ] {
        assert_eq!(detail(path).await, wanted, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_secret_of_the_environment_is_named() {
    let home = tempfile::tempdir().unwrap();
    std::fs::copy(memhost_tests::guest_file("stamped"), home.path().join("x.wasm")).unwrap();
    let line = words("plugin check x.wasm --allow-network --secret-env NOTES_KEY");
    let done =
        run(home.path(), &[("NOTES_KEY", "ab12"), ("MEMHOST_TOKEN", TOKEN)], &line, "").await;
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("`NOTES_KEY` has 4 bytes; 8 to 8,192 are allowed"), "{done:?}");
}

/// A value that somebody found in a log has an owner, and to ask does not spread it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whose_a_tokens_value_is_can_be_asked() {
    let terminal = Terminal::open(&[]).await;
    let api = Api::new(&terminal.host);
    terminal.fine("company create --company globex").await;
    let made = terminal.json("token create quinn --role auditor").await;
    let value = made["value"].as_str().unwrap();
    let asked = async |line: &str, value: &str| {
        let done = terminal.run_with(line, value).await;
        assert_eq!(done.code, 0, "{line}: {done:?}");
        assert!(!done.out.contains(value.trim()) && !done.err.contains(value.trim()), "{done:?}");
        done.out
    };
    for line in ["token find", "token find --operators"] {
        let found = asked(line, &format!("{value}\n")).await;
        assert!(found.contains("quinn") && !found.contains("does not work"), "{line}: {found}");
    }
    assert!(asked("token find --company globex", value).await.contains("no token that you may"));
    assert!(asked("token find", "mh_nobody").await.contains("no token that you may"));
    // To ask is no use of it, and what was revoked is still known.
    let listed = terminal.json("token list").await;
    assert!(listed["items"][0]["lastUsedAt"].is_null(), "{listed}");
    terminal.fine("token delete quinn").await;
    let found = asked("token find", value).await;
    assert!(found.contains("does not work: the token was revoked"), "{found}");
    // Only who may list tokens is told.
    let body = json!({"value": value}).to_string();
    let agent = api.agent("ada").await;
    for path in ["/control/v1/companies/acme/tokens/find", "/control/v1/tokens/find"] {
        let refused = agent.send(Method::Post, path, Some(body.clone()), &[]).await;
        assert_eq!(refused.status, 403, "{}", refused.text);
    }
    assert_eq!(terminal.run_with("token find", " \n").await.code, 2);
    let long = terminal.run_with("token find", &"x".repeat(513)).await;
    assert!(long.code == 2 && long.err.contains("has 513 bytes; send the token alone"), "{long:?}");
}
