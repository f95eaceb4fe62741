//! Companies have homes at several hosts, and nobody who asks notices.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Host, TOKEN, listed, program, send, with};

/// Waits until something is so.
pub(crate) fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(40);
    while !is_so() {
        assert!(Instant::now() < until, "not within 40 s: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub(crate) fn company(number: usize) -> String {
    format!("company-{number}")
}

pub(crate) fn capture_path(company: &str) -> String {
    format!("/runtime/v1/companies/{company}/capture")
}

pub(crate) fn query_path(company: &str) -> String {
    format!("/runtime/v1/companies/{company}/query")
}

pub(crate) fn query(company: &str, word: &str) -> Value {
    json!({"scope": {"companyId": company}, "query": word, "topK": 50})
}

pub(crate) fn capture(company: &str, text: &str) -> Value {
    json!({
        "scope": {"companyId": company},
        "source": {"kind": "run", "companyId": company, "runId": "r1"},
        "payload": {"text": text},
    })
}

pub(crate) fn captured(at: &Host, company: &str, text: &str) {
    at.fine(&capture_path(company), Some(&capture(company, text)));
}

pub(crate) fn found(at: &Host, company: &str, word: &str) -> usize {
    with(&at.fine(&query_path(company), Some(&query(company, word))), word)
}

pub(crate) fn cli(at: &Host, args: &[&str]) -> Value {
    let mut command: Command = program();
    let output = command.args(args).args(["--url", &at.url, "--token", TOKEN, "-o", "json"]);
    let output = output.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// How many groups each host serves that is up, in the order of their URLs for others.
fn groups(at: &Host) -> Vec<u64> {
    let all = cli(at, &["cluster", "list"]);
    let mut all: Vec<&Value> = all["items"].as_array().unwrap().iter().collect();
    all.retain(|host| host["isUp"] == true);
    all.sort_by_key(|host| host["peerUrl"].to_string());
    all.iter().map(|host| host["groups"].as_u64().unwrap()).collect()
}

/// Waits until so many hosts have their share of the groups.
pub(crate) fn spread(at: &Host, hosts: usize) {
    let least = 16 / u64::try_from(hosts).unwrap() - 1;
    wait_for("each host has its share", || {
        let all = groups(at);
        let is_whole = all.len() == hosts && all.iter().sum::<u64>() == 16;
        is_whole && all.iter().all(|count| *count >= least)
    });
}

/// Captures at a host, each time in another company, until it is told to stop.
struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Written>,
}

#[derive(Default)]
struct Written {
    /// Companies and texts.
    acknowledged: Vec<(String, String)>,
    others: Vec<(u16, Value)>,
}

impl Writer {
    fn start(at: &Host, name: &str, companies: usize) -> Self {
        let (url, name, stop) = (at.url.clone(), name.to_owned(), Arc::<AtomicBool>::default());
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut written = Written::default();
            for number in 0.. {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let company = company(number % companies);
                let text = format!("{name}{number} was here");
                let body = capture(&company, &text);
                match send(&url, &capture_path(&company), Some(&body), None) {
                    Some((200, _)) => written.acknowledged.push((company, text)),
                    Some(other) => written.others.push(other),
                    None => written.others.push((0, Value::Null)),
                }
            }
            written
        });
        Self { stop, thread }
    }

    fn stop(self) -> Written {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap()
    }
}

fn check_once(at: &Host, written: &Written, companies: usize) {
    let listed: HashMap<String, HashMap<String, usize>> =
        (0..companies).map(|number| (company(number), listed(at, &company(number)))).collect();
    for (company, text) in &written.acknowledged {
        assert_eq!(listed[company].get(text), Some(&1), "{text} in {company}");
    }
}

/// The events of all companies, as an operator reads them at one host.
struct Events(Arc<Mutex<String>>);

impl Events {
    fn follow(at: &Host) -> Self {
        let address = at.url.trim_start_matches("http://").to_owned();
        let mut stream = TcpStream::connect(&address).unwrap();
        let request = format!(
            "GET /control/v1/stream HTTP/1.1\r\nhost: {address}\r\n\
             authorization: Bearer {TOKEN}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let read = Arc::<Mutex<String>>::default();
        let text = Arc::clone(&read);
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                text.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        let events = Self(read);
        events.until("200 OK");
        events
    }

    fn until(&self, text: &str) {
        wait_for(text, || self.0.lock().unwrap().contains(text));
    }
}

/// The status of a request with a token.
fn status(at: &Host, token: &str, path: &str) -> u16 {
    let address = at.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Sends a form or reads a page of the explorer. Answers the head and the body.
fn page(at: &Host, path: &str, cookie: &str) -> (String, String) {
    let address = at.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {address}\r\ncookie: {cookie}\r\naccept: text/html\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn companies_have_homes_at_every_host_and_any_host_answers_for_each() {
    const COMPANIES: usize = 24;
    let Some(cluster) = Cluster::new() else { return };
    let hosts = ["a", "b", "c"].map(|name| cluster.start(name));
    for number in 0..COMPANIES {
        captured(&hosts[number % 3], &company(number), "The letters are in the north archive");
    }
    spread(&hosts[0], 3);
    // A stream that would miss a host ends.
    let known = |host: &Host| {
        let checks = host.fine("/control/v1/doctor", None);
        let names = checks["items"].as_array().unwrap().iter().map(|check| &check["name"]);
        names.filter(|name| name.as_str().unwrap().starts_with("bindings")).count()
    };
    wait_for("the host knows the others", || known(&hosts[1]) == 3);
    let events = Events::follow(&hosts[1]);
    for number in 0..COMPANIES {
        let name = company(number);
        captured(&hosts[(number + 1) % 3], &name, "The maps are in the south archive");
        assert_eq!(found(&hosts[(number + 2) % 3], &name, "archive"), 2, "{name}");
    }
    // What an operator sees of all of them is the same at every host.
    let names: BTreeSet<String> = (0..COMPANIES).map(company).collect();
    for host in &hosts {
        let listed = host.fine("/control/v1/companies", None);
        let listed = listed["items"].as_array().unwrap().iter();
        let listed: BTreeSet<String> = listed.map(|one| one.as_str().unwrap().to_owned()).collect();
        assert_eq!(listed, names);
        let checks = host.fine("/control/v1/doctor", None);
        let bindings = checks["items"].as_array().unwrap().iter().filter_map(|check| {
            let found = check["found"].as_str()?;
            check["name"].as_str()?.starts_with("bindings").then(|| found.split(' ').next())?
        });
        let counts: Vec<usize> = bindings.map(|count| count.parse().unwrap()).collect();
        assert_eq!((counts.len(), counts.iter().sum::<usize>()), (3, COMPANIES), "{checks}");
    }
    for number in 0..COMPANIES {
        events.until(&format!("\"companyId\":\"{}\"", company(number)));
    }
    // Each host has figures of its own.
    let figure = |host: &Host, name: &str| -> u64 {
        let text = send(&host.url, "/metrics", None, None).unwrap().1;
        let text = text.as_str().unwrap().to_owned();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        line.unwrap_or_else(|| panic!("{name}: {text}"))
    };
    let groups: u64 = hosts.iter().map(|host| figure(host, "memhost_groups ")).sum();
    assert_eq!(groups, 16);
    let bindings: u64 = hosts.iter().map(|host| figure(host, "memhost_bindings ")).sum();
    assert_eq!(bindings, COMPANIES as u64);
}

/// A company's token works at every host and in its company only; an operator's is refused
/// everywhere within a second after it was revoked.
#[test]
fn tokens_and_sessions_are_known_at_every_host() {
    let Some(cluster) = Cluster::new() else { return };
    let hosts = ["a", "b"].map(|name| cluster.start(name));
    for number in 0..8 {
        captured(&hosts[0], &company(number), "The letters are in the north archive");
    }
    spread(&hosts[0], 2);
    let bindings = |number| format!("/control/v1/companies/{}/bindings", company(number));
    let make = |args: &[&str]| {
        let made = cli(&hosts[1], args);
        let text = |at: &str| made[at].as_str().unwrap().to_owned();
        (text("value"), text("id"))
    };
    for number in 0..8 {
        let name = company(number);
        let (token, id) =
            make(&["token", "create", "t", "--company", &name, "--role", "company_administrator"]);
        for host in &hosts {
            assert_eq!(status(host, &token, &bindings((number + 1) % 8)), 403, "{name}");
        }
        // The refusals are in the log of the token's company, not in that of the other one.
        let refused = format!("/control/v1/companies/{name}/operations?outcome=refused");
        let refused = hosts[0].fine(&refused, None);
        assert!(!refused["items"].as_array().unwrap().is_empty(), "{name}: {refused}");
        for host in &hosts {
            assert_eq!(status(host, &token, &bindings(number)), 200, "{name}");
            assert_eq!(status(host, &token, "/control/v1/companies"), 403);
            assert_eq!(status(host, &token, "/metrics"), 403);
        }
        cli(&hosts[0], &["token", "delete", &id, "--company", &name]);
        for host in &hosts {
            assert_eq!(status(host, &token, &bindings(number)), 401, "{name}");
        }
    }
    let (token, id) = make(&["token", "create", "t", "--operators", "--role", "operator"]);
    let everywhere = |wanted: u16| {
        wait_for("every host knows of the token", || {
            let is_so = |host: &Host| {
                status(host, &token, "/control/v1/companies") == wanted
                    && (0..8).all(|number| status(host, &token, &bindings(number)) == wanted)
            };
            hosts.iter().all(is_so)
        });
    };
    everywhere(200);
    // Whoever signs in at one host is signed in at all of them.
    let link = json!({"token": token});
    let link = hosts[0].fine("/sign-in/link", Some(&link));
    let (head, _) = page(&hosts[1], link["path"].as_str().unwrap(), "");
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")?.split(';').next());
    let cookie = cookie.unwrap_or_else(|| panic!("{head}"));
    let pages = |wanted: &str| {
        for host in &hosts {
            for number in 0..8 {
                let (head, _) = page(host, &format!("/c/{}", company(number)), cookie);
                assert!(head.starts_with(wanted), "{head}");
            }
        }
    };
    pages("HTTP/1.1 200");
    let (_, body) = page(&hosts[1], "/", cookie);
    assert!((0..8).all(|number| body.contains(&company(number))), "{body}");
    cli(&hosts[1], &["token", "delete", &id, "--operators"]);
    everywhere(401);
    pages("HTTP/1.1 303");
}

/// Hosts come and go while others are asked: nothing fails, and nothing is lost.
#[test]
fn companies_move_without_a_failed_request() {
    const COMPANIES: usize = 12;
    let Some(cluster) = Cluster::new() else { return };
    let (first, second) = (cluster.start("a"), cluster.start("b"));
    let writers: Vec<Writer> = [&first, &second, &first]
        .into_iter()
        .zip(["one", "two", "three"])
        .map(|(host, name)| Writer::start(host, name, COMPANIES))
        .collect();
    spread(&first, 2);
    let mut third = cluster.start("c");
    spread(&first, 3);
    third.signal(Signal::TERM);
    assert!(third.child.wait().unwrap().success());
    spread(&second, 2);
    // One that is killed has some of the companies, and they are served again within seconds.
    let mut third = cluster.start("c");
    spread(&first, 3);
    third.child.kill().unwrap();
    third.child.wait().unwrap();
    let begun = Instant::now();
    spread(&second, 2);
    // A busy machine may need a second move until each has its share.
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    for writer in writers {
        let written = writer.stop();
        // What was being done at the host that was killed is not known, nor is what was sent to it
        // on another connection before that was known to be closed.
        assert!(written.others.len() <= 2, "{:?}", written.others);
        assert!(written.others.iter().all(|(status, _)| *status == 500), "{:?}", written.others);
        assert!(written.acknowledged.len() > 100, "{}", written.acknowledged.len());
        check_once(&second, &written, COMPANIES);
    }
}

/// A request whose body does not come, at a host.
fn begins(at: &Host, number: usize) -> TcpStream {
    let address = at.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "POST {} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: 300\r\n\r\n{{\"scope\":",
        capture_path(&company(number))
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// A host that is drained gives its companies away, answers for them through others, and gets some
/// again when that is undone.
#[test]
fn a_host_that_is_drained_serves_no_company_and_passes_requests_on() {
    let Some(cluster) = Cluster::new() else { return };
    let mut hosts = ["a", "b"].map(|name| cluster.start(name));
    for number in 0..6 {
        captured(&hosts[0], &company(number), "The letters are in the north archive");
    }
    spread(&hosts[0], 2);
    let all = cli(&hosts[0], &["cluster", "list"]);
    let mut drained = all["items"].as_array().unwrap().iter().filter(|host| host["isUp"] == true);
    let drained = drained.find(|host| host["isLeader"] == true).unwrap();
    let url = drained["peerUrl"].as_str().unwrap();
    let state = |at: &str| {
        let all = cli(&hosts[0], &["cluster", "list"]);
        let all = all["items"].as_array().unwrap().iter();
        all.clone().find(|host| host["peerUrl"] == url).unwrap()[at].clone()
    };
    let drain = |args: &[&str]| cli(&hosts[1], &[&["cluster", "drain", url], args].concat());
    // Requests that never end hold up nobody else for long.
    let unfinished: Vec<TcpStream> = (0..6).map(|number| begins(&hosts[0], number)).collect();
    assert_eq!(drain(&[])["isDraining"], true);
    let begun = Instant::now();
    for number in 0..6 {
        assert_eq!(found(&hosts[1], &company(number), "archive"), 1);
    }
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    drop(unfinished);
    wait_for("the host has no group", || state("groups") == 0 && state("isLeader") == false);
    for number in 0..6 {
        for host in &hosts {
            assert_eq!(found(host, &company(number), "archive"), 1);
        }
    }
    assert_eq!(state("groups"), 0, "it takes none again");
    assert_eq!(drain(&["--undo"])["isDraining"], false);
    spread(&hosts[0], 2);
    // Where no other host is left, one that is drained serves.
    for host in cli(&hosts[0], &["cluster", "list"])["items"].as_array().unwrap() {
        let url = host["peerUrl"].as_str().unwrap();
        assert_eq!(cli(&hosts[1], &["cluster", "drain", url])["isDraining"], true);
    }
    hosts[1].child.kill().unwrap();
    hosts[1].child.wait().unwrap();
    for number in 0..6 {
        assert_eq!(found(&hosts[0], &company(number), "archive"), 1);
    }
    let mut unknown = program();
    unknown.args(["cluster", "drain", "nowhere", "--url", &hosts[0].url, "--token", TOKEN]);
    let unknown = unknown.output().unwrap();
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert!(!unknown.status.success() && said.contains("memhost cluster list"), "{said}");
}
