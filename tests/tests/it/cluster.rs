//! Several hosts on one PostgreSQL, as the processes that operators run: any of them takes any
//! request, and any may end at any moment.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use memhost_postgres::testing;
use memhost_tests::TestHost;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

pub(crate) use self::writer::Writer;
use crate::support::Api;

mod writer;

pub(crate) const TOKEN: &str = "the-operators-token-of-all-hosts";

pub(crate) type Flags = BTreeMap<&'static str, String>;

/// Hosts on a database of their own.
pub(crate) struct Cluster {
    pub(crate) database: String,
    directory: tempfile::TempDir,
}

/// One process.
pub(crate) struct Host {
    pub(crate) child: Child,
    pub(crate) url: String,
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Host {
    pub(crate) fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(id, signal).unwrap();
    }

    /// The status and the JSON of an answer. None: there was no answer.
    fn send(&self, path: &str, body: Option<&Value>, key: Option<&str>) -> Option<(u16, Value)> {
        send(&self.url, path, body, key)
    }

    pub(crate) fn fine(&self, path: &str, body: Option<&Value>) -> Value {
        let (status, answer) = self.send(path, body, None).expect("no answer");
        assert!((200..300).contains(&status), "{status} {answer}");
        answer
    }
}

pub(crate) fn send(
    url: &str,
    path: &str,
    body: Option<&Value>,
    key: Option<&str>,
) -> Option<(u16, Value)> {
    send_with(TOKEN, url, path, body, key)
}

/// The same with another token.
pub(crate) fn send_with(
    token: &str,
    url: &str,
    path: &str,
    body: Option<&Value>,
    key: Option<&str>,
) -> Option<(u16, Value)> {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(30)))
        .build();
    let agent = ureq::Agent::from(config);
    let token = format!("Bearer {token}");
    let sent = match body {
        Some(body) => {
            let mut call = agent.post(format!("{url}{path}")).header("authorization", &token);
            if let Some(key) = key {
                call = call.header("idempotency-key", key);
            }
            call.send_json(body)
        }
        None => agent.get(format!("{url}{path}")).header("authorization", &token).call(),
    };
    let mut response = sent.ok()?;
    let status = response.status().as_u16();
    let text = response.body_mut().read_to_string().ok()?;
    Some((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
}

impl Cluster {
    /// None where no PostgreSQL is installed.
    pub(crate) fn new() -> Option<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let database = runtime.block_on(testing::database())?;
        Some(Self::on(database))
    }

    /// On this database.
    pub(crate) fn on(database: String) -> Self {
        Self { database, directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn command(&self, name: &str) -> Command {
        self.command_with(name, |_| {})
    }

    /// A command whose flags were changed.
    pub(crate) fn command_with(&self, name: &str, change: impl FnOnce(&mut Flags)) -> Command {
        let path = |name: &str| self.path(name).display().to_string();
        let mut flags = Flags::from([
            ("--listen", "127.0.0.1:0".to_owned()),
            ("--peer-listen", "127.0.0.1:0".to_owned()),
            ("--data-dir", path(name)),
            ("--host-key-file", path("host.key")),
            ("--vault-key-file", path("vault.key")),
        ]);
        change(&mut flags);
        let mut command = program();
        command.env("MEMHOST_STORE", &self.database).env("MEMHOST_OPERATOR_TOKEN", TOKEN);
        command.arg("serve");
        for (flag, value) in flags {
            command.arg(flag).arg(value);
        }
        command
    }

    pub(crate) fn start(&self, name: &str) -> Host {
        listening(self.command(name))
    }
}

pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memhost-cli"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("MEMHOST_")) {
        command.env_remove(name);
    }
    command.env("MEMHOST_CACHE_DIR", memhost_tests::cache_dir());
    command
}

/// Starts a host and waits until it listens.
pub(crate) fn listening(mut command: Command) -> Host {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = String::new();
    loop {
        let Some(Ok(line)) = lines.next() else {
            panic!("the host ended with {}: {said}", child.wait().unwrap())
        };
        if let Some((_, url)) = line.split_once("listening on ") {
            let url = url.to_owned();
            // Nobody reads it any more, and it must not be closed.
            std::thread::spawn(move || lines.for_each(drop));
            return Host { child, url };
        }
        said.push_str(&line);
    }
}

/// What a program says that ends by itself, and its exit code; -1 if it has to be ended.
pub(crate) fn ends(mut command: Command) -> (i32, String) {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(40);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), said)
}

pub(crate) const CAPTURE: &str = "/runtime/v1/companies/acme/capture";
pub(crate) const QUERY: &str = "/runtime/v1/companies/acme/query";

pub(crate) fn capture(text: &str) -> Value {
    json!({
        "scope": {"companyId": "acme"},
        "source": {"kind": "run", "companyId": "acme", "runId": "r1"},
        "payload": {"text": text},
    })
}

pub(crate) fn query(word: &str) -> Value {
    json!({"scope": {"companyId": "acme"}, "query": word, "topK": 50})
}

/// How many texts with this word are found.
pub(crate) fn found(at: &Host, word: &str) -> usize {
    with(&at.fine(QUERY, Some(&query(word))), word)
}

/// How many texts of an answer have a word.
pub(crate) fn with(answer: &Value, word: &str) -> usize {
    let all = answer["snippets"].as_array().expect("no snippets");
    all.iter().filter(|one| one["text"].as_str().unwrap_or_default().contains(word)).count()
}

/// The names of hosts by what they do, as `memhost cluster list` says it.
pub(crate) fn states(at: &Host) -> HashMap<String, usize> {
    let mut command = program();
    command.args(["cluster", "list", "--url", &at.url, "--token", TOKEN, "-o", "json"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut states = HashMap::new();
    for host in all["items"].as_array().unwrap() {
        let state = match (host["isUp"].as_bool().unwrap(), host["isLeader"].as_bool().unwrap()) {
            (true, true) => "leads",
            (true, false) => "follows",
            (false, _) => "gone",
        };
        *states.entry(state.to_owned()).or_default() += 1;
    }
    states
}

/// All texts of a company that are listed, and how often.
pub(crate) fn listed(at: &Host, company: &str) -> HashMap<String, usize> {
    let mut listed = HashMap::<String, usize>::new();
    let mut body = json!({"scope": {"companyId": company}, "limit": 100});
    loop {
        let page = at.fine(&format!("/runtime/v1/companies/{company}/list"), Some(&body));
        for item in page["items"].as_array().expect("no items") {
            *listed.entry(item["text"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        match page.get("nextCursor").filter(|cursor| !cursor.is_null()) {
            Some(next) => body["cursor"] = next.clone(),
            None => return listed,
        }
    }
}

/// Every text that was acknowledged is there once.
pub(crate) fn check_once(at: &Host, acknowledged: &[String]) {
    let listed = listed(at, "acme");
    for text in acknowledged {
        assert_eq!(listed.get(text), Some(&1), "{text}");
    }
}

#[test]
fn any_host_takes_any_request_and_one_that_is_killed_is_replaced() {
    let Some(cluster) = Cluster::new() else { return };
    let (mut first, second, third) = (cluster.start("a"), cluster.start("b"), cluster.start("c"));
    first.fine(CAPTURE, Some(&capture("The letters are kept in the north archive")));
    second.fine(CAPTURE, Some(&capture("The maps are kept in the south archive")));
    for host in [&first, &second, &third] {
        assert_eq!(found(host, "archive"), 2);
    }
    assert_eq!(states(&third), HashMap::from([("leads".to_owned(), 1), ("follows".to_owned(), 2)]));
    // The first one that was started leads.
    let (plain, keyed) =
        (Writer::start(&second.url, "plain", false), Writer::start(&third.url, "keyed", true));
    plain.more(15);
    keyed.more(15);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    plain.more(15);
    keyed.more(15);
    let (plain, keyed) = (plain.stop(), keyed.stop());
    // What was being done when its host ended is not known. Everything else waits for the next one.
    let after: Vec<_> = keyed.acknowledged.iter().chain(&plain.acknowledged).cloned().collect();
    assert!(plain.others.len() <= 1, "{:?}", plain.others);
    assert!(plain.others.iter().all(|(status, _)| *status == 500), "{:?}", plain.others);
    assert!(keyed.others.len() <= 1, "{:?}", keyed.others);
    let unknown = |(_, answer): &(u16, Value)| answer["code"] == "idempotency_unknown";
    assert!(keyed.others.iter().all(unknown), "{:?}", keyed.others);
    let longest = plain.longest.max(keyed.longest);
    assert!(longest < Duration::from_secs(12), "{longest:?}");
    assert!(plain.acknowledged.len() > 20 && keyed.acknowledged.len() > 20);
    check_once(&second, &after);
    check_once(&third, &after);
    assert_eq!(found(&second, "archive"), 2);
    // Another one takes its place.
    let again = cluster.start("a");
    assert_eq!(found(&again, "archive"), 2);
}

/// A host that is paused does not know how long. When it goes on, it answers nothing of what it had
/// in memory.
#[test]
fn a_host_that_was_paused_answers_nothing_old() {
    let Some(cluster) = Cluster::new() else { return };
    let (first, second) = (cluster.start("a"), cluster.start("b"));
    first.fine(CAPTURE, Some(&capture("The key of the harbour is under the stone")));
    first.signal(Signal::STOP);
    let moved = capture("The key of the harbour is with the captain");
    let (status, answer) = second.send(CAPTURE, Some(&moved), Some("moved")).unwrap();
    assert_eq!(status, 200, "{answer}");
    // Sent while it is paused: it reads the request when it goes on.
    let body = query("harbour").to_string();
    let address = first.url.trim_start_matches("http://");
    let mut asking = TcpStream::connect(address).unwrap();
    let request = format!(
        "POST {QUERY} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    asking.write_all(request.as_bytes()).unwrap();
    first.signal(Signal::CONT);
    let mut said = String::new();
    asking.read_to_string(&mut said).unwrap();
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
    let answer: Value = serde_json::from_str(body).unwrap();
    match status {
        200 => assert_eq!(with(&answer, "harbour"), 2, "{answer}"),
        _ => assert_eq!(status, 503, "{answer}"),
    }
    let late = first.fine(CAPTURE, Some(&capture("The key of the harbour has a red ribbon")));
    assert!(late["operationId"].is_string(), "{late}");
    for host in [&first, &second] {
        assert_eq!(found(host, "harbour"), 3);
    }
}

/// A process that is started again at the address of one that led is another host: it answers, and
/// so do the others.
#[test]
fn a_leader_that_is_killed_and_started_again_at_its_address_refuses_nobody() {
    let Some(cluster) = Cluster::new() else { return };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let start = || {
        let port = port.to_string();
        listening(cluster.command_with("a", |flags| drop(flags.insert("--peer-listen", port))))
    };
    let mut first = start();
    let second = cluster.start("b");
    first.fine(CAPTURE, Some(&capture("The letters are kept in the north archive")));
    let writer = Writer::start(&second.url, "plain", false);
    writer.more(10);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let again = start();
    let own = Writer::start(&again.url, "own", false);
    own.more(10);
    writer.more(10);
    let (written, own) = (writer.stop(), own.stop());
    assert!(written.others.iter().all(|(status, _)| *status == 500), "{:?}", written.others);
    assert!(written.others.len() <= 1, "{:?}", written.others);
    assert!(own.others.is_empty(), "{:?}", own.others);
    assert!(!own.acknowledged.is_empty());
    check_once(&second, &written.acknowledged);
    check_once(&again, &own.acknowledged);
}

/// A host that is stopped hands over: who asks another one waits for a moment and gets an answer.
#[test]
fn a_host_that_is_stopped_hands_over_without_a_failed_request() {
    let Some(cluster) = Cluster::new() else { return };
    let (mut first, second) = (cluster.start("a"), cluster.start("b"));
    first.fine(CAPTURE, Some(&capture("The letters are kept in the north archive")));
    let writer = Writer::start(&second.url, "plain", false);
    writer.more(10);
    first.signal(Signal::TERM);
    assert!(first.child.wait().unwrap().success());
    writer.more(10);
    let written = writer.stop();
    assert!(written.others.is_empty(), "{:?}", written.others);
    assert!(written.longest < Duration::from_secs(10), "{:?}", written.longest);
    check_once(&second, &written.acknowledged);
    assert_eq!(states(&second), HashMap::from([("leads".to_owned(), 1)]));
}

#[test]
fn a_host_that_cannot_be_beside_the_others_says_why_and_ends() {
    let Some(cluster) = Cluster::new() else { return };
    let first = cluster.start("a");
    first.fine(CAPTURE, Some(&capture("The letters are kept in the north archive")));

    let other = cluster.path("other.key").display().to_string();
    let other_key = cluster.command_with("b", |flags| drop(flags.insert("--host-key-file", other)));
    let (code, said) = ends(other_key);
    assert!(
        code == 2 && said.contains("the host key") && said.contains("--host-key-file"),
        "{code} {said}"
    );

    let alone = cluster.command_with("c", |flags| drop(flags.remove("--peer-listen")));
    let (code, said) = ends(alone);
    assert!(code == 2 && said.contains("--peer-listen"), "{code} {said}");

    let mut other_token = cluster.command("d");
    other_token.env("MEMHOST_OPERATOR_TOKEN", "another-token-of-an-operator");
    let (code, said) = ends(other_token);
    assert!(code == 2 && said.contains("the operator token"), "{code} {said}");

    let shared = cluster.path("shared").display().to_string();
    let other_directory =
        cluster.command_with("d", |flags| drop(flags.insert("--shared-dir", shared)));
    let (code, said) = ends(other_directory);
    assert!(code == 2 && said.contains("--shared-dir"), "{code} {said}");

    let (code, said) = ends(cluster.command("a"));
    assert!(code == 1 && said.contains("is in use by another process"), "{code} {said}");

    let nowhere = "http://127.0.0.1:9".to_owned();
    let unreached = cluster.command_with("d", |flags| drop(flags.insert("--peer-url", nowhere)));
    let (code, said) = ends(unreached);
    assert!(code == 2 && said.contains("is not reached there"), "{code} {said}");

    let mut without_token = cluster.command("d");
    without_token.env_remove("MEMHOST_OPERATOR_TOKEN");
    let (code, said) = ends(without_token);
    assert!(code == 2 && said.contains("MEMHOST_OPERATOR_TOKEN"), "{code} {said}");

    let with_password = "postgres://u:secret@db.example/m".to_owned();
    let mut shown = cluster.command_with("e", |flags| drop(flags.insert("--store", with_password)));
    shown.env_remove("MEMHOST_STORE");
    let (code, said) = ends(shown);
    assert!(code == 2 && said.contains("--store") && !said.contains("secret"), "{code} {said}");

    let all = "0.0.0.0:0".to_owned();
    let public = cluster.command_with("f", |flags| drop(flags.insert("--peer-listen", all)));
    let (code, said) = ends(public);
    assert!(code == 2 && said.contains("--allow-plain-http"), "{code} {said}");

    let embedded = cluster.path("g");
    std::fs::create_dir_all(&embedded).unwrap();
    std::fs::write(embedded.join("FORMAT"), "memhost-data 1\n").unwrap();
    let (code, said) = ends(cluster.command("g"));
    assert!(code == 1 && said.contains("a store of its own"), "{code} {said}");

    let mut without_store = program();
    without_store.args(["serve", "--peer-listen", "127.0.0.1:0"]);
    without_store.arg("--data-dir").arg(cluster.path("h"));
    let (code, said) = ends(without_store);
    assert!(code == 2 && said.contains("--store"), "{code} {said}");
}

/// The address for other hosts answers nobody else, and a client cannot pretend to be a host.
#[test]
fn only_hosts_are_answered_at_the_address_of_hosts() {
    let Some(cluster) = Cluster::new() else { return };
    let first = cluster.start("a");
    first.fine(CAPTURE, Some(&capture("The letters are kept in the north archive")));
    let hosts = first.fine("/control/v1/hosts", None);
    let peers = hosts["items"][0]["peerUrl"].as_str().unwrap().to_owned();
    assert_ne!(peers, first.url);
    let (status, answer) = send(&peers, QUERY, Some(&query("archive")), None).unwrap();
    assert_eq!((status, &answer["code"]), (403, &json!("forbidden")), "{answer}");
    let agent =
        ureq::Agent::from(ureq::Agent::config_builder().http_status_as_error(false).build());
    let forged = agent
        .get(format!("{peers}/control/v1/hosts"))
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("memhost-hop", "all.00000000-0000-0000-0000-000000000000.00")
        .call()
        .unwrap();
    assert_eq!(forged.status(), 403);
    // At the address for clients the header means nothing.
    let sent = agent
        .get(format!("{}/control/v1/hosts", first.url))
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("memhost-hop", "all.00000000-0000-0000-0000-000000000000.00")
        .call()
        .unwrap();
    assert_eq!(sent.status(), 200);
}

/// The built-in provider keeps its files in the database, or in a directory that all hosts share.
#[test]
fn records_are_in_the_shared_directory_where_there_is_one() {
    let Some(cluster) = Cluster::new() else { return };
    let shared = cluster.path("shared");
    let start = |name: &str| {
        let path = shared.display().to_string();
        listening(cluster.command_with(name, |flags| drop(flags.insert("--shared-dir", path))))
    };
    let (mut first, second) = (start("a"), start("b"));
    first.fine(CAPTURE, Some(&capture("The letters are kept in the north archive")));
    assert!(shared.join("memory/acme").is_dir());
    assert!(!cluster.path("a").join("memory").exists());
    first.child.kill().unwrap();
    assert_eq!(found(&second, "archive"), 1);
}

/// A provider that cannot do without files is refused where hosts share no directory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_needs_files_needs_a_directory_that_all_hosts_share() {
    let Some(database) = testing::database().await else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut joining = memhost_core::ServiceOptions::new(directory.path());
    joining.database = Some(database.clone());
    let peer_url = Some("http://127.0.0.1:1".to_owned());
    let joined = joining.join("a".to_owned(), peer_url, b"token").await.unwrap();
    let membership = joined.membership;
    let group = memhost_core::Group::of(&"acme".parse().unwrap());
    let term = membership.take(group).await.unwrap().unwrap();
    let host = TestHost::with(&["floods-directory"], |options| {
        options.database = Some(database.clone());
        let opening = memhost_core::SharedParts::open(options, &membership);
        let opened = || tokio::runtime::Handle::current().block_on(opening).unwrap();
        let shared = tokio::task::block_in_place(opened);
        let membership = Arc::clone(&membership);
        options.tenure = Some(memhost_core::Tenure { membership, term, shared });
    });
    let host = host.await.unwrap();
    let api = Api::new(&host);
    let grants = json!({"directoryBytes": 1 << 20});
    let binding = json!({"key": "files", "providerKey": "floods-directory", "grants": grants});
    let made = api.post("/control/v1/companies/acme/bindings", &binding).await;
    let mut asked = query("anything");
    asked["bindingKey"] = json!("files");
    let answer = match made.status {
        200..300 => api.post(QUERY, &asked).await,
        _ => made,
    };
    assert!(answer.status >= 400 && answer.text.contains("shared_dir"), "{}", answer.text);
    // The built-in one can do without, here in a company of the same group.
    let mut built_in = capture("The letters are kept here");
    built_in["scope"]["companyId"] = json!("other-8");
    built_in["source"]["companyId"] = json!("other-8");
    api.post(&CAPTURE.replace("acme", "other-8"), &built_in).await.fine();
    assert_eq!(api.query("other-8", "letters").await.len(), 1);
    membership.leave().await;
}
