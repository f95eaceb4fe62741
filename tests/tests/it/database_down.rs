//! Hosts whose database goes away, or gives one of their companies to another host: callers are
//! told to come back, and find what was acknowledged. They run on PostgreSQL whatever the other
//! tests run on.

use memhost_postgres::testing;
use memhost_server::Method;
use memhost_tests::TestHost;
use memhost_tests::faults::Faults;
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::support::{Answer, Api, bind_provider};

const CAPTURE: &str = "/runtime/v1/companies/acme/capture";
const QUERY: &str = "/runtime/v1/companies/acme/query";

struct Setting {
    host: TestHost,
    api: Api,
    /// A connection to the same server, and not to the host's database.
    admin: Client,
    name: String,
}

impl Setting {
    async fn new() -> Option<Self> {
        Self::with(&[]).await
    }

    async fn with(guests: &[&str]) -> Option<Self> {
        let database = testing::database().await?;
        let (server, name) = database.rsplit_once('/').unwrap();
        let admin = testing::client(&format!("{server}/postgres")).await;
        let host = TestHost::with(guests, |options| options.database = Some(database.clone()));
        let host = host.await.unwrap();
        let api = Api::new(&host);
        Some(Self { host, api, admin, name: name.to_owned() })
    }

    /// Ends all connections to the database, and allows new ones or not.
    async fn allow(&self, allowed: bool) {
        let name = &self.name;
        let sql = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {allowed}");
        self.admin.batch_execute(&sql).await.unwrap();
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1";
        self.admin.query(sql, &[name]).await.unwrap();
    }
}

fn capture(text: &str) -> Value {
    json!({
        "scope": {"companyId": "acme"},
        "source": {"kind": "run", "companyId": "acme", "runId": "r1"},
        "payload": {"text": text},
    })
}

async fn found(api: &Api, word: &str) -> usize {
    api.query("acme", word).await.iter().filter(|text| text.contains(word)).count()
}

fn comes_back(answer: &Answer) {
    assert_eq!(answer.problem(), (503, "store_unavailable"), "{}", answer.text);
    assert_eq!(answer.headers["retry-after"], "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_without_its_database_says_when_to_come_back_and_goes_on_after_it() {
    let Some(setting) = Setting::new().await else { return };
    let api = &setting.api;
    api.capture("acme", "The seal sleeps on the rock.").await.fine();
    setting.allow(false).await;
    let key = [("idempotency-key", "once")];
    let write = async || {
        let body = capture("The whale sings in the bay.");
        api.send(Method::Post, CAPTURE, Some(body.to_string()), &key).await
    };
    let ask = json!({"scope": {"companyId": "acme"}, "query": "seal"});
    let token = json!({"name": "t", "role": "auditor"});
    let (written, asked, made) = tokio::join!(
        write(),
        api.post(QUERY, &ask),
        api.post("/control/v1/companies/acme/tokens", &token),
    );
    for answer in [&written, &asked, &made] {
        comes_back(answer);
    }
    setting.allow(true).await;
    // The key of what was not done does it now, once.
    for _ in 0..2 {
        write().await.fine();
    }
    assert_eq!(found(api, "seal").await, 1);
    assert_eq!(found(api, "whale").await, 1);
}

/// A guest is told only that its storage failed, and says so as an error of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_cannot_read_its_storage_can_be_asked_again() {
    let Some(setting) = Setting::with(&["reference"]).await else { return };
    let api = &setting.api;
    bind_provider(api, "acme", "reference").await;
    let records = json!([{"text": "The seal sleeps on the rock."}]);
    let upsert = json!({"scope": {"companyId": "acme"}, "records": records});
    api.post("/runtime/v1/companies/acme/records", &upsert).await.fine();
    let before = api.query("acme", "seal sleeps").await;
    assert_eq!(before.len(), 1);
    setting.allow(false).await;
    let ask = json!({"scope": {"companyId": "acme"}, "query": "seal"});
    let key = [("idempotency-key", "once")];
    let answer = api.send(Method::Post, QUERY, Some(ask.to_string()), &key).await;
    setting.allow(true).await;
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert_eq!(answer.headers["retry-after"], "1");
    assert_eq!(api.query("acme", "seal sleeps").await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_lost_a_company_writes_nothing_and_says_when_to_come_back() {
    let Some(setting) = Setting::new().await else { return };
    let api = &setting.api;
    api.capture("acme", "The seal sleeps on the rock.").await.fine();
    let client = testing::client(setting.host.database().unwrap()).await;
    let taken = "UPDATE homes SET host = gen_random_uuid(), token = token + 1 WHERE company = \
                 (SELECT id FROM companies WHERE name = 'acme')";
    assert_eq!(client.execute(taken, &[]).await.unwrap(), 1);
    comes_back(&api.post(CAPTURE, &capture("The whale sings in the bay.")).await);
    // It takes the company over again.
    api.capture("acme", "The crab walks sideways.").await.fine();
    for (word, count) in [("seal", 1), ("whale", 0), ("crab", 1)] {
        assert_eq!(found(api, word).await, count, "{word}");
    }
}

/// Wherever in a call the storage goes away: what was written before is not called undone, or a
/// repeated key would write it twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_writes_once_wherever_in_a_call_the_storage_goes_away() {
    let (faults, wrap) = Faults::new();
    let host = TestHost::with(&[], |options| options.wrap_store = Some(wrap)).await.unwrap();
    let api = Api::new(&host);
    // Without a directory the built-in provider has its files in storage.
    let grants = json!({"storageBytes": 64 << 20});
    let binding = json!({
        "key": "stored", "providerKey": "local-markdown", "grants": grants, "default": true,
    });
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    api.capture("acme", "The seal sleeps on the rock.").await.fine();
    let (mut refused, mut unknown) = (0, 0);
    for calls in 0.. {
        let body = capture(&format!("The whale number{calls} sings in the bay.")).to_string();
        let key = format!("key-{calls}");
        let key = [("idempotency-key", key.as_str())];
        faults.lose_storage_after(Some(calls));
        let first = api.send(Method::Post, CAPTURE, Some(body.clone()), &key).await;
        faults.lose_storage_after(None);
        let again = api.send(Method::Post, CAPTURE, Some(body), &key).await;
        let texts = api.query("acme", &format!("number{calls}")).await;
        let count = texts.iter().filter(|text| text.contains(&format!("number{calls} "))).count();
        assert!(count <= 1, "{calls} calls: {count} times, {} and {}", first.status, again.status);
        match first.status {
            503 => refused += 1,
            502 => unknown += 1,
            _ => break,
        }
    }
    assert!(refused > 0 && unknown > 0, "{refused} were undone, {unknown} unknown");
}
