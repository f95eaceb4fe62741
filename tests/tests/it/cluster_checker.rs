//! Looks for what no single test would find: clients write and read through several hosts, while
//! hosts are killed, paused and started again, what they send to the database arrives late, and the
//! database cuts connections and refuses them.
//! What clients note is compared with what is there at the end. `MEMHOST_CLUSTER_SECONDS` says how
//! long; `just cluster` takes ten minutes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use memhost_postgres::testing;
use rustix::process::Signal;

use crate::cluster::{Cluster, Host, listed, listening, send, with};
use crate::cluster_homes::{capture, capture_path, company, query, query_path};
use crate::late::LateSocket;

mod clocks;
mod promoted;
mod queues;

/// How long hosts have trouble in the usual run.
const SECONDS: u64 = 25;
const CLIENTS: usize = 6;
/// The most clients that write to one company.
const CLIENTS_OF_ONE: i64 = 2;
const HOSTS: [&str; 3] = ["a", "b", "c"];
/// Each has a home of its own, most of the time at different hosts.
const COMPANIES: usize = 4;

/// What clients note.
#[derive(Default)]
struct Noted {
    /// Texts that were sent, with whether they were acknowledged.
    sent: HashMap<String, bool>,
    /// Answers that nobody should get.
    wrong: Vec<String>,
    reads: usize,
    /// The longest time without an acknowledged write of one client.
    longest: Duration,
}

/// Numbers that look random, and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Writes a text with a key until it is acknowledged, then looks for it at any host: whatever is
/// answered must have it.
fn work(number: usize, urls: &RwLock<Vec<String>>, noted: &Mutex<Noted>, stop: &AtomicBool) {
    let mut dice = Dice(0x9e37_79b9 + number as u64);
    let mut any = || {
        let urls = urls.read().unwrap();
        urls[usize::try_from(dice.roll(urls.len() as u64)).unwrap()].clone()
    };
    let company = company(number % COMPANIES);
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        count += 1;
        let word = format!("client{number}item{count}");
        let text = format!("The {word} is noted");
        noted.lock().unwrap().sent.insert(text.clone(), false);
        let begun = Instant::now();
        let mut is_done = false;
        while !is_done && begun.elapsed() < Duration::from_secs(40) {
            match send(
                &any(),
                &capture_path(&company),
                Some(&capture(&company, &text)),
                Some(&word),
            ) {
                Some((200..300, _)) => is_done = true,
                // Whether it was done before its host ended is not known, and stays so.
                Some((409, answer)) if answer["code"] == "idempotency_unknown" => break,
                // The provider had written when its storage went away.
                Some((502, _)) => break,
                // Or the host failed after it had, and says so again for this key.
                Some((500, answer)) if answer["operationId"].is_string() => break,
                None | Some((500 | 503 | 504, _)) => {}
                Some(other) => noted.lock().unwrap().wrong.push(format!("{word}: {other:?}")),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        {
            let mut noted = noted.lock().unwrap();
            noted.longest = noted.longest.max(begun.elapsed());
            noted.sent.insert(text, is_done);
        }
        if !is_done {
            continue;
        }
        match send(&any(), &query_path(&company), Some(&query(&company, &word)), None) {
            Some((200, answer)) => {
                let mut noted = noted.lock().unwrap();
                noted.reads += 1;
                if with(&answer, &word) == 0 {
                    noted.wrong.push(format!("{word} was acknowledged and is not found: {answer}"));
                }
            }
            None | Some((500 | 502 | 503 | 504, _)) => {}
            Some(other) => noted.lock().unwrap().wrong.push(format!("{word}: {other:?}")),
        }
    }
}

/// A host that reaches the database through a socket of its own.
fn start(cluster: &Cluster, name: &str, socket: &LateSocket) -> Host {
    let mut command = cluster.command(name);
    command.env("MEMHOST_STORE", &socket.address);
    listening(command)
}

/// Lets the database note what a host writes of a company whose group another host has taken over.
/// Most of that could not be seen in answers: what a provider has in memory is written again. Who
/// writes is seen in the batch's number, which is written in the same transaction.
const NOTES_LATE_WRITES: &str = "
    CREATE TABLE late_writes (company bigint, number bigint);
    CREATE TABLE timely_writes (company bigint, number bigint);
    CREATE FUNCTION note_late_write() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        writer uuid := (SELECT host FROM lanes WHERE xmin = pg_current_xact_id()::xid);
        home uuid := (SELECT h.host FROM homes h JOIN companies c
            ON h.company = -1 - c.company_group WHERE c.id = NEW.company);
    BEGIN
        IF writer = home THEN
            INSERT INTO timely_writes VALUES (NEW.company, NEW.number);
        ELSE
            INSERT INTO late_writes VALUES (NEW.company, NEW.number);
        END IF;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER note_late_write AFTER INSERT OR UPDATE ON operations
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_late_write();
";

/// One trouble after the other.
fn trouble(
    cluster: &Cluster,
    (hosts, sockets): (&mut [Host], &[LateSocket]),
    urls: &RwLock<Vec<String>>,
    until: Instant,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (server, name) = cluster.database.rsplit_once('/').unwrap();
    let admin = runtime.block_on(testing::client(&format!("{server}/postgres")));
    let sql = |text: String| runtime.block_on(admin.batch_execute(&text)).unwrap();
    // But who watches.
    let cut = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' \
         AND application_name <> 'watching'"
    );
    let watching = runtime.block_on(testing::client(&cluster.database));
    runtime.block_on(watching.batch_execute("SET application_name = 'watching'")).unwrap();
    let home_of = |company: String| {
        let sql = "SELECT o.place::text FROM homes h JOIN hosts o ON o.id = h.host \
                   JOIN companies c ON h.company = -1 - c.company_group WHERE c.name = $1";
        let row = runtime.block_on(watching.query_opt(sql, &[&company])).ok()??;
        let place: String = row.get(0);
        let is_it = |name: &&str| {
            std::fs::read_to_string(cluster.path(name).join("host.id")).unwrap() == place
        };
        HOSTS.iter().position(is_it)
    };
    let mut dice = Dice(0x1234_5678_9abc);
    while Instant::now() < until {
        let any = usize::try_from(dice.roll(3)).unwrap();
        // Most trouble is that of a host that serves one of the companies.
        let whose = company(usize::try_from(dice.roll(COMPANIES as u64)).unwrap());
        let victim = home_of(whose).filter(|_| dice.roll(3) > 0).unwrap_or(any);
        let wait = Duration::from_millis(300 + dice.roll(5_000));
        match dice.roll(7) {
            0 | 1 => {
                hosts[victim].child.kill().unwrap();
                hosts[victim].child.wait().unwrap();
                std::thread::sleep(wait / 4);
                hosts[victim] = start(cluster, HOSTS[victim], &sockets[victim]);
                urls.write().unwrap()[victim] = hosts[victim].url.clone();
            }
            2 => {
                hosts[victim].signal(Signal::STOP);
                std::thread::sleep(wait);
                hosts[victim].signal(Signal::CONT);
            }
            // Long enough for another host to have taken over when it arrives.
            3 | 4 => sockets[victim].hold(wait.max(Duration::from_millis(4_500))),
            5 => sql(cut.clone()),
            _ => {
                sql(format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false; {cut}"));
                std::thread::sleep(wait / 2);
                sql(format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"));
            }
        }
        std::thread::sleep(Duration::from_millis(500 + dice.roll(2_000)));
    }
}

#[test]
fn what_was_acknowledged_is_there_once_whatever_happens_to_hosts() {
    let Some(cluster) = Cluster::new() else { return };
    let sockets = HOSTS.map(|_| LateSocket::new(&cluster.database));
    let mut hosts: Vec<Host> =
        HOSTS.iter().zip(&sockets).map(|(name, socket)| start(&cluster, name, socket)).collect();
    let urls = RwLock::new(hosts.iter().map(|host| host.url.clone()).collect());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let watching = || runtime.block_on(testing::client(&cluster.database));
    runtime.block_on(watching().batch_execute(NOTES_LATE_WRITES)).unwrap();
    let (noted, stop) = (Mutex::new(Noted::default()), AtomicBool::new(false));
    let seconds = seconds(SECONDS);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (urls, noted, stop) = (&urls, &noted, &stop);
            scope.spawn(move || work(number, urls, noted, stop));
        }
        let until = Instant::now() + Duration::from_secs(seconds);
        trouble(&cluster, (&mut hosts, &sockets), &urls, until);
        // What was begun is finished.
        stop.store(true, Ordering::Relaxed);
    });
    let count = |table: &str| {
        let count = format!("SELECT count(*) FROM {table}");
        let count = runtime.block_on(watching().query_one(&count, &[])).unwrap();
        count.get::<_, i64>(0)
    };
    assert_eq!(count("late_writes"), 0, "a host wrote that had been replaced");
    assert!(count("timely_writes") > 0, "the database has noted nothing");
    runtime.block_on(order(&cluster.database, CLIENTS_OF_ONE));
    compare(&noted.into_inner().unwrap(), &hosts[0]);
}

/// How long something lasts that has so many seconds in the usual run.
fn seconds(usual: u64) -> u64 {
    let named = std::env::var("MEMHOST_CLUSTER_SECONDS").ok();
    named.map_or(usual, |text| text.parse().unwrap())
}

/// Compares what the database has with the order in which it should have come. So many operations
/// of one company are done at a time.
async fn order(database: &str, at_a_time: i64) {
    let told = "WITH told AS (SELECT company, number, home_token, started_us, outcome, \
                  lag(number) OVER all_of_it AS last_number, \
                  lag(home_token) OVER all_of_it AS last_token, \
                  max(started_us) OVER (all_of_it ROWS BETWEEN UNBOUNDED PRECEDING \
                    AND 1 PRECEDING) AS latest \
                FROM operations WINDOW all_of_it AS (PARTITION BY company ORDER BY number)) ";
    let client = testing::client(database).await;
    let rows = async |sql: &str| client.query(&format!("{told}{sql}"), &[]).await.unwrap();
    // The next home has written what was cut short.
    let falls = "SELECT number FROM (SELECT number, home_token, lag(home_token) OVER \
                   (PARTITION BY company ORDER BY number) AS last_token \
                 FROM told WHERE outcome <> 'interrupted') AS done WHERE home_token < last_token";
    assert_eq!(rows(falls).await.len(), 0, "a later operation has a lower token");
    // A number without an operation was given to one that was being done when its home ended.
    let gaps = "SELECT company, last_token, sum(number - last_number - 1)::bigint \
                FROM told WHERE last_token = home_token GROUP BY 1, 2 HAVING \
                sum(number - last_number - 1) > $1::bigint";
    let gaps = client.query(&format!("{told}{gaps}"), &[&at_a_time]).await.unwrap();
    assert!(gaps.is_empty(), "numbers of operations are missing: {gaps:?}");
    // The number is given before the time is read, and a host may be paused in between.
    let early = "SELECT company, number, latest - started_us FROM told \
                 WHERE started_us < latest - 10000000";
    let early = rows(early).await;
    assert!(early.is_empty(), "later operations have earlier times: {early:?}");
}

/// Compares what clients have noted with what is there.
fn compare(noted: &Noted, at: &Host) {
    assert!(noted.wrong.is_empty(), "{:#?}", noted.wrong);
    let mut there = HashMap::new();
    for number in 0..COMPANIES {
        there.extend(listed(at, &company(number)));
    }
    let acknowledged = noted.sent.values().filter(|is_done| **is_done).count();
    eprintln!(
        "{acknowledged} writes of {} were acknowledged and {} reads answered; the longest write \
         took {:?}",
        noted.sent.len(),
        noted.reads,
        noted.longest
    );
    assert!(acknowledged > CLIENTS && noted.reads > CLIENTS);
    for (text, is_done) in &noted.sent {
        let count = there.get(text).copied().unwrap_or(0);
        assert!(count <= 1, "{text} is there {count} times");
        assert!(count == 1 || !is_done, "{text} was acknowledged and is not there");
    }
}
