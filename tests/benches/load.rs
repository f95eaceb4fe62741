//! The release binary under a load generator, `wrk`: reads, writes and both, with durability on,
//! beside a bare axum handler in the same run. `just load` builds what it needs; `MEMHOST_BIN`
//! names another binary, `MEMHOST_LOAD_SECONDS` the seconds of each row (10),
//! `MEMHOST_LOAD_CONNECTIONS` the connections (64).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a benchmark that cannot go on has failed"
)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

// The floors have the program's allocator.
use memhost_cli as _;

use axum::routing::post;
use axum::{Json, Router};
use memhost_tests::measure::{ratio, show, table};
use memhost_tests::{figures, guest_file};
use serde_json::{Value, json};

#[path = "shared/floor.rs"]
mod floor;
#[path = "shared/raw.rs"]
mod raw;

const TOKEN: &str = "a-token-of-sixteen-characters-or-more";
/// How many records are stored before the measurement.
const RECORDS: usize = 1_000;
/// How long the first request waits for the providers.
const COMPILED: Duration = Duration::from_secs(60);

/// A process that is ended with the benchmark.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts a program and reads its address from the first line that has one.
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines
            .map_while(Result::ok)
            .find_map(|line| Some(line[line.find("http://")?..].to_owned()));
        Self { child, url: url.expect("the server did not say where it listens") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The results of `wrk`.
struct Load {
    per_second: f64,
    p50: Duration,
    p99: Duration,
    wrong: u64,
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// How long each row takes.
fn seconds() -> u64 {
    setting("MEMHOST_LOAD_SECONDS", if figures::are_wanted() { 4 } else { 10 })
}

/// Many connections to one address, each with one request after the other, as the script makes
/// them.
fn load(url: &str, directory: &Path, requests: &str) -> Load {
    let (seconds, connections) = (seconds(), setting("MEMHOST_LOAD_CONNECTIONS", 64));
    let script = directory.join("load.lua");
    let text = format!(
        r#"
        wrk.method = "POST"
        wrk.headers["content-type"] = "application/json"
        wrk.headers["authorization"] = "Bearer {TOKEN}"
        local thread = 0
        function setup(t) t:set("id", thread) thread = thread + 1 end
        local n = 0
        {requests}
        function done(summary, latency, requests)
            local errors = summary.errors
            local wrong = errors.status + errors.read + errors.write + errors.timeout
            io.write(string.format("RESULT %d %d %d %d %d\n", summary.requests, summary.duration,
                latency:percentile(50), latency:percentile(99), wrong))
        end
        "#
    );
    fs::write(&script, text).unwrap();
    let threads = connections.min(2);
    let arguments = [
        format!("-t{threads}"),
        format!("-c{connections}"),
        format!("-d{seconds}s"),
        "-s".to_owned(),
    ];
    let output = Command::new("wrk").args(arguments).arg(&script).arg(url).output();
    let output = output.expect("wrk is needed: `apt-get install wrk`");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = text.lines().find_map(|line| line.strip_prefix("RESULT "));
    let found =
        found.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    let numbers: Vec<u64> = found.split(' ').map(|number| number.parse().unwrap()).collect();
    let &[requests, micros, p50, p99, wrong] = numbers.as_slice() else { panic!("{found}") };
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    let per_second = requests as f64 / (micros as f64 / 1e6);
    Load { per_second, p50: Duration::from_micros(p50), p99: Duration::from_micros(p99), wrong }
}

/// The answer to a request, which the host refuses as long as it compiles its providers.
fn send(url: &str, path: &str, body: &Value) -> Vec<u8> {
    let started = Instant::now();
    loop {
        let request =
            ureq::post(format!("{url}{path}")).header("authorization", format!("Bearer {TOKEN}"));
        match request.header("content-type", "application/json").send(body.to_string()) {
            Err(ureq::Error::StatusCode(503)) if started.elapsed() < COMPILED => {
                std::thread::sleep(Duration::from_millis(200));
            }
            answer => return answer.unwrap().body_mut().read_to_vec().unwrap(),
        }
    }
}

/// A handler that reads JSON and answers the bytes of a file.
fn bare(answer: Vec<u8>) -> Router {
    Router::new().fallback(post(move |Json(_): Json<Value>| async move {
        ([("content-type", "application/json")], answer.clone())
    }))
}

/// Serves a floor in a process of its own.
fn serve(router: impl FnOnce() -> Router) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("http://{}", listener.local_addr().unwrap());
        axum::serve(listener, router()).await.unwrap();
    });
}

/// Files a second of a program that does the file work of a durable record and nothing else, with
/// as many writers as there are connections: create, sync, rename, sync the folder.
fn bare_files(directory: &Path) -> f64 {
    let (connections, seconds) = (setting("MEMHOST_LOAD_CONNECTIONS", 64), seconds());
    let until = Instant::now() + Duration::from_secs(seconds);
    let text = "---\nid: 0\n---\n".repeat(16);
    let write = |writer: u64| {
        let (names, mut count) = (File::open(directory).unwrap(), 0_u64);
        while Instant::now() < until {
            let at = |end: &str| directory.join(format!("{writer}-{count}.{end}"));
            let mut file = File::create(at("new")).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.sync_all().unwrap();
            fs::rename(at("new"), at("md")).unwrap();
            names.sync_all().unwrap();
            count += 1;
        }
        count
    };
    let count: u64 = std::thread::scope(|scope| {
        let write = &write;
        let writers: Vec<_> =
            (0..connections).map(|writer| scope.spawn(move || write(writer))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    let (count, seconds) = (count as f64, seconds as f64);
    count / seconds
}

fn main() {
    if let Some(answer) = std::env::var_os("MEMHOST_LOAD_BARE") {
        return serve(|| bare(fs::read(answer).unwrap()));
    }
    if let Some(directory) = std::env::var_os("MEMHOST_LOAD_FLOOR") {
        return serve(|| floor::router(Path::new(&directory)));
    }
    let beside =
        || std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("memhost");
    let binary = std::env::var_os("MEMHOST_BIN").map_or_else(beside, PathBuf::from);
    assert!(
        binary.exists(),
        "{} is not there: `cargo build --release -p memhost` makes it",
        binary.display()
    );
    let directory = tempfile::tempdir().unwrap();
    let plugins = directory.path().join("plugins");
    fs::create_dir(&plugins).unwrap();
    fs::copy(guest_file("echo"), plugins.join("echo.wasm")).unwrap();
    let host = Server::start(
        Command::new(&binary)
            .arg("serve")
            .args(["--listen", "127.0.0.1:0", "--token", TOKEN, "--audit", "durable", "--data-dir"])
            .arg(directory.path().join("data"))
            .arg("--plugins-dir")
            .arg(&plugins),
    );
    let bind = |key: &str, provider: &str, grants: Value| {
        let limits = json!({"callsPerSecond": 0, "concurrentCalls": 8, "queuedCalls": 1_000});
        let body = json!({"key": key, "providerKey": provider, "grants": grants, "limits": limits});
        send(&host.url, "/control/v1/companies/load/bindings", &body);
    };
    bind("echo", "echo", json!({}));
    bind("files", "local-markdown", json!({"storageBytes": 512 << 20, "directoryBytes": 1 << 30}));
    let topic =
        |n: usize| ["launch", "budget", "gate", "invoice", "holiday", "release", "contract"][n % 7];
    for start in (0..RECORDS).step_by(100) {
        let record = |n: usize| {
            json!({
                "text": format!(
                    "Note {n}: the {} of team {} moved to week {}", topic(n), n % 31, n % 52,
                ),
            })
        };
        let records: Vec<Value> = (start..start + 100).map(record).collect();
        let body =
            json!({"scope": {"companyId": "load"}, "bindingKey": "files", "records": records});
        send(&host.url, "/runtime/v1/companies/load/records", &body);
    }
    let query = json!({"scope": {"companyId": "load"}, "bindingKey": "echo", "query": "launch"});
    let answer = directory.path().join("answer.json");
    fs::write(&answer, send(&host.url, "/runtime/v1/companies/load/query", &query)).unwrap();
    let this = || Command::new(std::env::current_exe().unwrap());
    let floor = Server::start(this().env("MEMHOST_LOAD_BARE", &answer));
    let by_hand = directory.path().join("by-hand");
    let by_hand = Server::start(this().env("MEMHOST_LOAD_FLOOR", &by_hand));

    let read = |binding: &str| {
        format!(
            r#"wrk.format("POST", "/runtime/v1/companies/load/query", nil, string.format(
                '{{"scope":{{"companyId":"load"}},"bindingKey":"{binding}","query":"launch of team %d","topK":5}}', n % 31))"#
        )
    };
    let write = |binding: &str| {
        format!(
            r#"wrk.format("POST", "/runtime/v1/companies/load/records", nil, string.format(
                '{{"scope":{{"companyId":"load"}},"bindingKey":"{binding}","records":[{{"text":"thread %d note %d"}}]}}', id, n))"#
        )
    };
    let every = |one: String| format!("function request() n = n + 1 return {one} end");
    let mixed = |binding: &str| {
        let (read, write) = (read(binding), write(binding));
        format!(
            "function request() n = n + 1 if n % 5 == 0 then return {write} end return {read} end"
        )
    };
    let rows = [
        (
            "a bare axum handler that reads and answers JSON (floor)",
            &floor.url,
            every(read("echo")),
        ),
        (
            "a handler by hand: raw call, record on disk in groups of bare sled",
            &by_hand.url,
            every(read("echo")),
        ),
        ("query, a provider that does nothing", &host.url, every(read("echo"))),
        ("query, local-markdown over 1,000 records", &host.url, every(read("files"))),
        ("write, local-markdown, a file a record", &host.url, every(write("files"))),
        ("4 queries to 1 write, local-markdown", &host.url, mixed("files")),
    ];
    let mut measured = Vec::new();
    for (name, url, requests) in rows {
        // The first seconds of a process are not measured.
        measured.push((name, load(url, directory.path(), &requests)));
    }
    let files = directory.path().join("files");
    fs::create_dir(&files).unwrap();
    let files = bare_files(&files);
    let rate = |row: usize| measured[row].1.per_second;
    figures::note(
        "requests of a provider that does nothing, share of bare axum",
        rate(2) / rate(0),
    );
    figures::note("the same, share of a handler by hand with bare sled", rate(2) / rate(1));
    figures::note(
        "requests of the built-in over 1,000 records, share of bare axum",
        rate(3) / rate(0),
    );
    figures::note("writes of the built-in, share of bare files", rate(4) / files);
    let floor = &measured[0].1;
    let row = |(name, load): &(&str, Load)| {
        vec![
            (*name).to_owned(),
            format!("{:.0}", load.per_second),
            format!("{:.2}", load.per_second / floor.per_second),
            show(load.p50),
            show(load.p99),
            ratio(load.p99, floor.p99),
            load.wrong.to_string(),
        ]
    };
    table(
        "The release binary at 64 connections, every operation's record on disk before its answer",
        &["what", "requests/s", "of the floor's", "p50", "p99", "over the floor's p99", "wrong"],
        &measured.iter().map(row).collect::<Vec<_>>(),
    );
    println!(
        "\nBare durable files a second, as many writers: {files:.0}; share: {:.2}",
        rate(4) / files
    );
}
