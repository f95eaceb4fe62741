//! Jobs, deliveries, budgets and tokens, while hosts are killed, paused and cut off.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use memhost_tests::guest_file;
use serde_json::{Value, json};

use super::promoted::Stops;
use super::{HOSTS, order, seconds, start, trouble};
use crate::cluster::{Cluster, Host, TOKEN, send, send_with};
use crate::cluster_homes::{capture, capture_path, company, query_path, spread, wait_for};
use crate::late::LateSocket;

/// How long hosts have trouble in the usual run.
const SECONDS: u64 = 14;
/// The company with the budget.
const SPENDS: usize = 3;
const SPENDERS: usize = 2;
/// Clients that leave jobs and send hooks, each in a company of its own.
const WORKERS: usize = 2;
/// When a token that was revoked works nowhere any more.
const REVOKED_WITHIN: Duration = Duration::from_secs(1);

/// What clients note.
#[derive(Default)]
struct Noted {
    /// The operations that left a job, by company.
    captured: Vec<(usize, String)>,
    /// The ids of hooks that were taken, by company.
    hooks: Vec<(usize, String)>,
    /// Captures that cost a cent and were acknowledged.
    paid: usize,
    revoked: usize,
    wrong: Vec<String>,
}

struct Clients<'a> {
    urls: &'a RwLock<Vec<String>>,
    noted: Mutex<Noted>,
    stop: AtomicBool,
}

fn control(company: &str, rest: &str) -> String {
    format!("/control/v1/companies/{company}/{rest}")
}

impl Clients<'_> {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn url(&self, number: usize) -> String {
        let urls = self.urls.read().unwrap();
        urls[number % urls.len()].clone()
    }

    /// Sends something to one host after the other until it is done. None: whether it was done is
    /// not known.
    fn does(&self, path: &str, body: &Value, key: Option<&str>) -> Option<Value> {
        let until = Instant::now() + Duration::from_secs(40);
        for number in 0.. {
            match send(&self.url(number), path, Some(body), key) {
                Some((200..300, answer)) => return Some(answer),
                Some((402, answer)) if answer["code"] == "budget_exceeded" => return Some(answer),
                Some((409, answer)) if answer["code"] == "idempotency_unknown" => return None,
                Some((502, _)) => return None,
                Some((500, answer)) if answer["operationId"].is_string() => return None,
                None | Some((500 | 503 | 504, _)) => {}
                Some(other) => {
                    self.noted.lock().unwrap().wrong.push(format!("{path}: {other:?}"));
                    return None;
                }
            }
            if Instant::now() > until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Leaves jobs that take three calls, and sends hooks, each of them several times.
    fn work(&self, number: usize) {
        let name = company(number);
        let mut count = 0;
        while self.goes_on() {
            count += 1;
            let key = format!("job-{number}-{count}");
            let text = capture(&name, &format!("job slices 3 of {key}"));
            if let Some(answer) = self.does(&capture_path(&name), &text, Some(&key)) {
                let id = answer["operationId"].as_str().unwrap_or_default().to_owned();
                self.noted.lock().unwrap().captured.push((number, id));
            }
            let id = format!("hook-{number}-{count}");
            let hook = json!({
                "hookKind": "post_run_capture",
                "hookId": id,
                "triggeredAt": "2026-11-20T10:00:00Z",
                "scope": {"companyId": name},
                "source": {"kind": "run", "companyId": name, "runId": id},
                "payload": {"text": format!("The {id} was here")},
            });
            let path = format!("/runtime/v1/companies/{name}/hooks");
            for _ in 0..2 {
                if self.does(&path, &hook, None).is_some() {
                    self.noted.lock().unwrap().hooks.push((number, id.clone()));
                }
            }
        }
    }

    /// Spends a cent at a time, and goes on trying when nothing is left.
    fn spend(&self, number: usize) {
        let name = company(SPENDS);
        let mut count = 0;
        while self.goes_on() {
            count += 1;
            let key = format!("paid-{number}-{count}");
            let text = capture(&name, &format!("paid 1 for {key}"));
            let answer = self.does(&capture_path(&name), &text, Some(&key));
            if answer.is_some_and(|answer| answer["code"].is_null()) {
                self.noted.lock().unwrap().paid += 1;
            }
            std::thread::sleep(Duration::from_millis(400));
        }
    }

    /// Makes tokens, revokes each of them at some host, and tries it at all.
    fn revoke(&self, is_operators: bool) {
        // An operator's is known at the homes of all companies.
        let (tokens, role, companies) = match is_operators {
            true => ("/control/v1/tokens".to_owned(), "operator", 0..=SPENDS),
            false => (control(&company(0), "tokens"), "company_administrator", 0..=0),
        };
        let body = json!({"name": "t", "role": role});
        let used: Vec<String> =
            companies.map(|number| control(&company(number), "bindings")).collect();
        let uses: Vec<(usize, &String)> =
            (0..HOSTS.len()).flat_map(|host| used.iter().map(move |path| (host, path))).collect();
        while self.goes_on() {
            let Some(made) = self.does(&tokens, &body, None) else { continue };
            let (value, id) = (made["value"].as_str().unwrap(), made["id"].as_str().unwrap());
            let works = |(host, path): &(usize, &String)| {
                let answer = send_with(value, &self.url(*host), path, None, None);
                matches!(answer, Some((200..300, _)))
            };
            let until = Instant::now() + Duration::from_secs(3);
            while !uses.iter().all(works) && Instant::now() < until {}
            let path = format!("{tokens}/{id}");
            let is_revoked = (0..).take_while(|_| self.goes_on()).any(|number| {
                let done = delete(&self.url(number), &path);
                matches!(done, Some(200..300 | 404))
            });
            if !is_revoked {
                return;
            }
            std::thread::sleep(REVOKED_WITHIN);
            let still: Vec<_> = uses.iter().filter(|one| works(one)).collect();
            let mut noted = self.noted.lock().unwrap();
            noted.revoked += 1;
            if !still.is_empty() {
                noted.wrong.push(format!("{path} was revoked and works at {still:?}"));
            }
        }
    }
}

/// The status of a deletion.
fn delete(url: &str, path: &str) -> Option<u16> {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(15)))
        .build();
    let call = ureq::Agent::from(config).delete(format!("{url}{path}"));
    let sent = call.header("authorization", format!("Bearer {TOKEN}")).call();
    sent.ok().map(|response| response.status().as_u16())
}

/// All items of a list.
fn all(at: &Host, path: &str) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let join = if path.contains('?') { '&' } else { '?' };
        let page = at.fine(&format!("{path}{join}limit=1000{cursor}"), None);
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

/// How often each of some names is there.
fn counted(names: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    counts
}

#[test]
fn nothing_succeeds_twice_is_overspent_or_works_when_revoked_whatever_happens_to_hosts() {
    let Some(cluster) = Cluster::new() else { return };
    let sockets = HOSTS.map(|_| LateSocket::new(&cluster.database));
    for name in HOSTS {
        let plugins = cluster.path(name).join("plugins");
        std::fs::create_dir_all(&plugins).unwrap();
        std::fs::copy(guest_file("extracts"), plugins.join("extracts.wasm")).unwrap();
    }
    let mut hosts: Vec<Host> =
        HOSTS.iter().zip(&sockets).map(|(name, socket)| start(&cluster, name, socket)).collect();
    for number in 0..=SPENDS {
        let binding = json!({
            "key": "extracts", "providerKey": "extracts", "default": true,
            "grants": {"storageBytes": 64 << 20, "http": [{"origin": "https://api.example.com"}]},
        });
        hosts[0].fine(&control(&company(number), "bindings"), Some(&binding));
    }
    // It lasts while hosts have trouble.
    let seconds = seconds(SECONDS);
    let cents = 2 * usize::try_from(seconds).unwrap();
    let budget = json!({"limitCents": cents});
    let limited = control(&company(SPENDS), "budgets/month");
    let config = ureq::Agent::config_builder().build();
    ureq::Agent::from(config)
        .put(format!("{}{limited}", hosts[0].url))
        .header("authorization", format!("Bearer {TOKEN}"))
        .send_json(&budget)
        .unwrap();
    spread(&hosts[0], 3);
    let urls = RwLock::new(hosts.iter().map(|host| host.url.clone()).collect());
    let clients = Clients { urls: &urls, noted: Mutex::default(), stop: AtomicBool::default() };
    std::thread::scope(|scope| {
        let _stops = Stops(&clients.stop);
        let clients = &clients;
        (0..WORKERS).for_each(|number| drop(scope.spawn(move || clients.work(number))));
        (0..SPENDERS).for_each(|number| drop(scope.spawn(move || clients.spend(number))));
        for is_operators in [true, false] {
            scope.spawn(move || clients.revoke(is_operators));
        }
        let until = Instant::now() + Duration::from_secs(seconds);
        trouble(&cluster, (&mut hosts, &sockets), &urls, until);
        let budgets = control(&company(SPENDS), "budgets");
        let state = || hosts[2].fine(&budgets, None)["items"][0]["state"].clone();
        wait_for("the budget is used up", || state() == "stopped");
    });
    let noted = clients.noted.into_inner().unwrap();
    assert!(noted.wrong.is_empty(), "{:#?}", noted.wrong);
    for number in 0..WORKERS {
        check_work(&hosts[0], number, &noted);
    }
    check_budget(&hosts[1], cents, &noted);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Beside the calls of clients, jobs and deliveries are done.
    runtime.block_on(order(&cluster.database, 16));
    eprintln!(
        "{} jobs, {} hooks, {} cents and {} revoked tokens",
        noted.captured.len(),
        noted.hooks.len() / 2,
        noted.paid,
        noted.revoked
    );
    assert!(noted.captured.len() > WORKERS && noted.hooks.len() > WORKERS && noted.revoked > 1);
}

/// Every job and every delivery succeeds once.
fn check_work(at: &Host, number: usize, noted: &Noted) {
    let name = company(number);
    let (jobs, deliveries) = (control(&name, "jobs"), control(&name, "deliveries"));
    let ended = |path: &str, status: &str| {
        let items = all(at, path);
        !items.is_empty() && items.iter().all(|item| item["status"] == status)
    };
    wait_for("jobs have ended", || ended(&jobs, "succeeded"));
    wait_for("deliveries have ended", || ended(&deliveries, "delivered"));
    // Each acknowledged capture has left one.
    let left = counted(all(at, &jobs).iter().map(|job| job["operationId"].to_string()));
    for (_, id) in noted.captured.iter().filter(|(of, _)| *of == number) {
        assert_eq!(left.get(&json!(id).to_string()), Some(&1), "the job of {id}");
    }
    // The provider counts.
    let asked = json!({"scope": {"companyId": name}, "query": "count successes/", "topK": 1});
    let answer = at.fine(&query_path(&name), Some(&asked));
    let said = answer["snippets"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(said, format!("1 {}", left.len()), "the most of one job, and of all");
    // The log says which operation a job has ended with.
    let is_last = |one: &&Value| one["outcome"] == "succeeded" && one["recordCount"] == 1;
    let ended = all(at, &control(&name, "operations?kind=extraction"));
    let records = ended.iter().filter(is_last).map(|one| one["records"].to_string());
    let twice: Vec<_> = counted(records).into_iter().filter(|(_, count)| *count > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let captured = all(at, &control(&name, "operations?hookKind=post_run_capture"));
    let delivered = captured.iter().filter(|one| one["outcome"] == "succeeded");
    let delivered = counted(delivered.map(|one| one["hook"]["hookId"].to_string()));
    let hooks: HashMap<_, _> = all(at, &deliveries)
        .iter()
        .map(|one| (one["hook"]["hookId"].to_string(), one["operationId"].clone()))
        .collect();
    for (_, name) in noted.hooks.iter().filter(|(of, _)| *of == number) {
        let id = json!(name).to_string();
        assert!(hooks.contains_key(&id), "{id} was taken and has no delivery");
        let tries = captured.iter().filter(|one| one["hook"]["hookId"] == *name);
        let tries: Vec<_> = tries.collect();
        assert_eq!(delivered.get(&id), Some(&1), "deliveries of {id}: {tries:#?}");
    }
}

/// As many cents as calls that run at a time may be spent beyond the budget.
fn check_budget(at: &Host, cents: usize, noted: &Noted) {
    let name = company(SPENDS);
    let budget = at.fine(&control(&name, "budgets"), None)["items"][0].clone();
    let spent = usize::try_from(budget["spentCents"].as_u64().unwrap()).unwrap();
    assert_eq!(budget["state"], "stopped", "{budget}");
    assert!((cents..cents + SPENDERS).contains(&spent), "{budget}");
    let costs = at.fine(&control(&name, "costs"), None)["total"]["costCents"].clone();
    let events = all(at, &control(&name, "cost-events"));
    let sum: u64 = events.iter().map(|event| event["costCents"].as_u64().unwrap()).sum();
    assert_eq!(costs, json!(sum), "the sum of all cost events");
    let sum = usize::try_from(sum).unwrap();
    assert!(noted.paid <= sum, "{} were acknowledged, and {sum} are there", noted.paid);
    // A host knows what was spent by an operation that it could not record.
    assert!(sum <= spent, "{sum} cents of {spent}");
}
