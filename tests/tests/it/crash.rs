//! `kill -9` at random moments under load: acknowledged writes are stored once, others are stored
//! as a whole or not at all, and operations in progress are shown as interrupted.
//!
//! `MEMHOST_CRASH_ROUNDS` sets the number of rounds; the default is 20, and 8 in the short form.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use memhost_tests::{TestHost, caller, is_whole, list, parse};
use memhost_types::{BindingLimits, OperationFilter, OperationId, Outcome};
use serde_json::{Value, json};

use super::support::Api;

const COMPANIES: [(&str, &str); 2] = [("files", "local-markdown"), ("storage", "reference")];

/// The acknowledgements of all rounds.
#[derive(Default)]
struct Acknowledged {
    operations: HashMap<String, Vec<(OperationId, &'static str)>>,
    /// Company, then record, then its text.
    records: BTreeMap<String, HashMap<String, String>>,
    /// Records that were to be forgotten, without an answer.
    unsure: HashSet<(String, String)>,
    gone: HashSet<(String, String)>,
}

impl Acknowledged {
    fn line(&mut self, line: &str) {
        let parts: Vec<&str> = line.split('\t').collect();
        let &[what, company, operation, record, text] = parts.as_slice() else { return };
        let kind = match what {
            "wrote" => "write",
            "read" => "read",
            "forgot" => "forget",
            _ => "",
        };
        if !kind.is_empty() {
            let id = operation.parse().unwrap();
            self.operations.entry(company.to_owned()).or_default().push((id, kind));
        }
        let key = (company.to_owned(), record.to_owned());
        match what {
            "wrote" => {
                let records = self.records.entry(company.to_owned()).or_default();
                let before = records.insert(record.to_owned(), text.to_owned());
                assert_eq!(before, None, "the record id {record} was given twice");
            }
            "forgetting" => drop(self.unsure.insert(key)),
            "forgot" => {
                self.unsure.remove(&key);
                self.gone.insert(key);
            }
            _ => {}
        }
    }
}

fn rounds() -> usize {
    let given = std::env::var("MEMHOST_CRASH_ROUNDS");
    given.map_or(if is_whole() { 20 } else { 8 }, |rounds| rounds.parse().unwrap())
}

/// Runs a worker on a host's directory, kills it after its lifetime, and answers the whole lines
/// that it has written.
fn killed(worker: &str, host: &TestHost, round: usize, lifetime: Duration) -> String {
    let mut worker = Command::new(worker)
        .args([host.data_dir(), &host.directory().join("plugins")])
        .arg(round.to_string())
        .envs(host.database().map(|address| (memhost_tests::DATABASE, address)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = worker.stderr.take().unwrap();
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).map(|_| text)
    });
    let mut out = worker.stdout.take().unwrap();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let mut first = [0; 6];
        if out.read_exact(&mut first).is_ok() {
            ready.send(()).unwrap();
            out.read_to_string(&mut text).unwrap();
        }
        text
    });
    if is_ready.recv_timeout(Duration::from_secs(120)).is_err() {
        let _ = worker.kill();
        panic!("the host did not come up after a crash:\n{}", errors.join().unwrap().unwrap());
    }
    std::thread::sleep(lifetime);
    worker.kill().unwrap();
    worker.wait().unwrap();
    errors.join().unwrap().unwrap();
    let text = reader.join().unwrap();
    // A last line without its end was not acknowledged.
    text.rsplit_once('\n').map_or(String::new(), |(whole, _)| whole.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_doubled() {
    let rounds = rounds();
    let mut host = TestHost::new(&["reference"]).await.unwrap();
    for (company, provider) in COMPANIES {
        host.bind(company, provider, BindingLimits::default()).await.unwrap();
    }
    let mut seen = Acknowledged::default();
    for round in 0..rounds {
        host.stop().await;
        // From the first write to some thousand writes.
        let lifetime = Duration::from_micros(u64::from(fastrand(round)) % 200_000);
        let lines = killed(env!("CARGO_BIN_EXE_crash-worker"), &host, round, lifetime);
        lines.lines().for_each(|line| seen.line(line));
        host.start().await.unwrap();
        check(&host, &seen).await;
    }
    let operations: usize = seen.operations.values().map(Vec::len).sum();
    println!("{rounds} rounds, {operations} acknowledged operations");
    assert!(
        operations > rounds,
        "only {operations} operations in {rounds} rounds: too few for a test"
    );
}

/// A limit on the file size stands for a full disk: the system refuses the write at the same place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let mut host = TestHost::new(&["reference"]).await.unwrap();
    for (company, provider) in COMPANIES {
        host.bind(company, provider, BindingLimits::default()).await.unwrap();
    }
    let (data, plugins) = (host.data_dir().to_owned(), host.directory().join("plugins"));
    host.stop().await;
    // sled writes segments of 512 KiB from the beginning; a few of them are left. `ulimit -f`
    // counts 512 bytes.
    let script = "trap '' XFSZ; ulimit -f 4096; exec \"$0\" \"$@\"";
    let worker = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_crash-worker")])
        .args([&data, &plugins])
        .arg("0")
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ended = tokio::task::spawn_blocking(move || worker.wait_with_output());
    let output = tokio::time::timeout(Duration::from_secs(120), ended)
        .await
        .expect("it hangs on a full disk");
    let output = output.unwrap().unwrap();
    assert!(!output.status.success(), "the limit was never reached");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("nothing was acknowledged") || said.contains("could not be recorded"),
        "{said}"
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let mut seen = Acknowledged::default();
    text.rsplit_once('\n').map_or("", |(whole, _)| whole).lines().for_each(|line| seen.line(line));
    assert!(!seen.operations.is_empty(), "the disk was full before anything was written");
    host.start().await.unwrap();
    check(&host, &seen).await;
}

/// A random number without a crate.
fn fastrand(round: usize) -> u32 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_usize(round);
    u32::try_from(hasher.finish() >> 32).unwrap()
}

async fn check(host: &TestHost, seen: &Acknowledged) {
    for (company, _) in COMPANIES {
        let recorded = operations(host, company).await;
        for (id, kind) in seen.operations.get(company).into_iter().flatten() {
            let outcome = recorded
                .get(id)
                .unwrap_or_else(|| panic!("the {kind} {id} of {company} is not recorded"));
            assert_eq!(*outcome, Outcome::Succeeded, "the {kind} {id} of {company}");
        }
        assert!(
            recorded.values().all(|outcome| *outcome != Outcome::InProgress),
            "a dead operation is in progress"
        );
        let kept = records(host, company).await;
        for (record, text) in seen.records.get(company).into_iter().flatten() {
            let key = (company.to_owned(), record.clone());
            match kept.get(record) {
                Some(found) => {
                    assert!(
                        !seen.gone.contains(&key),
                        "the forgotten record {record} of {company} is back"
                    );
                    assert_eq!(found, text);
                }
                None if seen.gone.contains(&key) || seen.unsure.contains(&key) => {}
                None => panic!("the record {record} of {company} is lost: {text}"),
            }
        }
        let mut texts: Vec<&String> = kept.values().collect();
        let all = texts.len();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), all, "a record of {company} is there twice");
    }
    let findings = host.service().control().verify_store().await.unwrap();
    assert!(findings.is_empty(), "{findings:?}");
}

async fn operations(host: &TestHost, company: &str) -> HashMap<OperationId, Outcome> {
    let company = parse(company);
    let (mut all, mut cursor) = (HashMap::new(), None);
    loop {
        let page = host
            .service()
            .control()
            .operations(&company, &OperationFilter::default(), cursor.as_deref(), 1_000)
            .await
            .unwrap();
        for operation in page.items {
            assert_eq!(
                all.insert(operation.id, operation.outcome),
                None,
                "{} is listed twice",
                operation.id
            );
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return all,
        }
    }
}

async fn records(host: &TestHost, company: &str) -> HashMap<String, String> {
    let (mut all, mut cursor) = (HashMap::new(), None);
    loop {
        let page = host
            .service()
            .operations()
            .list(&caller(), list(company, 1_000, cursor))
            .await
            .unwrap();
        for item in page.items {
            let id = item.handle.provider_record_id.to_string();
            assert_eq!(all.insert(id, item.text), None, "a record is listed twice");
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return all,
        }
    }
}

/// Hooks and jobs: what was accepted is delivered in the end, once, and no job succeeds twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_accepted_delivery_is_lost_and_no_job_succeeds_twice() {
    let rounds = rounds();
    let mut host = TestHost::with(&["extracts"], |options| {
        options.retry.first = Duration::from_millis(5);
        options.retry.longest = Duration::from_millis(20);
        options.retry.attempts = 1_000;
    })
    .await
    .unwrap();
    super::support::bind(&Api::new(&host), "acme", "extracts", &json!({})).await;
    let mut accepted = Vec::new();
    // A busy machine accepts nothing in some rounds.
    let mut round = 0;
    while round < rounds || (accepted.len() <= rounds && round < 20 * rounds) {
        host.stop().await;
        let lifetime = Duration::from_micros(u64::from(fastrand(round)) % 150_000);
        let lines = killed(env!("CARGO_BIN_EXE_crash-hooks"), &host, round, lifetime);
        accepted.extend(lines.lines().map(str::to_owned));
        host.start().await.unwrap();
        round += 1;
    }
    let api = Api::new(&host);
    let company = "/control/v1/companies/acme";
    for list in ["deliveries?status=pending", "jobs?status=queued", "jobs?status=running"] {
        ended(&api, &format!("{company}/{list}")).await;
    }
    let mut delivered = HashMap::new();
    for_each(&api, &format!("{company}/deliveries"), |delivery| {
        assert_eq!(delivery["status"], "delivered", "{delivery}");
        let hook = delivery["hook"]["hookId"].as_str().unwrap().to_owned();
        let before = delivered.insert(hook, delivery["operationId"].clone());
        assert!(before.is_none(), "two deliveries of one hook: {delivery}");
    })
    .await;
    let lost: Vec<_> = accepted.iter().filter(|hook| !delivered.contains_key(*hook)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    // Each capture that leaves a job left one, and each job succeeded once, as its provider counts
    // it.
    let mut jobs = 0;
    for_each(&api, &format!("{company}/jobs"), |job| {
        assert_eq!(job["status"], "succeeded", "{job}");
        jobs += 1;
    })
    .await;
    let counted = api.query("acme", "count successes/").await;
    assert_eq!(counted, [format!("1 {jobs}")], "the highest count of one job, and of all of them");
    println!("{rounds} rounds, {} accepted deliveries, {jobs} jobs", accepted.len());
    assert!(
        accepted.len() > rounds && jobs > rounds,
        "too few for a test: {} deliveries and {jobs} jobs",
        accepted.len()
    );
}

/// Waits until a list is empty: for at most two minutes in which it becomes no shorter, because
/// many rounds leave much.
async fn ended(api: &Api, list: &str) {
    let (mut least, mut until) = (usize::MAX, Instant::now());
    loop {
        // A page of a filtered list may be empty and have a next one.
        let mut left = Vec::new();
        for_each(api, list, |item| left.push(item.clone())).await;
        if left.is_empty() {
            return;
        }
        if left.len() < least {
            (least, until) = (left.len(), Instant::now() + Duration::from_secs(120));
        }
        assert!(Instant::now() < until, "{least} are left in {list}, among them {:#}", left[0]);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn for_each(api: &Api, path: &str, mut item: impl FnMut(&Value)) {
    let mut cursor = String::new();
    loop {
        let next = if path.contains('?') { '&' } else { '?' };
        let page = api.get(&format!("{path}{next}limit=1000{cursor}")).await;
        page["items"].as_array().unwrap().iter().for_each(&mut item);
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return,
        }
    }
}
