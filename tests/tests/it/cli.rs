//! The command line against a running host: every noun with its verbs, every output form, and
//! contexts.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use memhost_tests::{Serving, TestHost, eventually};
use serde_json::{Value, json};

pub(crate) const TOKEN: &str = "a-token-of-the-test";

/// A host that listens, and a person's home from which commands are run.
pub(crate) struct Terminal {
    pub(crate) host: TestHost,
    pub(crate) home: tempfile::TempDir,
    pub(crate) url: String,
    serving: Option<Serving>,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Terminal {
    pub(crate) async fn open(guests: &[&str]) -> Self {
        Self::of(TestHost::new(guests).await.unwrap()).await
    }

    pub(crate) async fn of(host: TestHost) -> Self {
        let serving = Serving::start(&host, TOKEN).await.unwrap();
        let home = tempfile::tempdir().unwrap();
        Self { host, home, url: serving.url().to_owned(), serving: Some(serving) }
    }

    /// Runs a command with the host, the token and the company `acme` in its environment.
    pub(crate) async fn run(&self, line: &str) -> Done {
        self.run_with(line, "").await
    }

    pub(crate) async fn run_with(&self, line: &str, input: &str) -> Done {
        let environment = [
            ("MEMHOST_URL", self.url.as_str()),
            ("MEMHOST_TOKEN", TOKEN),
            ("MEMHOST_COMPANY", "acme"),
        ];
        run(self.home.path(), &environment, &words(line), input).await
    }

    /// Ends the host; its directory stays.
    pub(crate) async fn end(&mut self) {
        drop(self.serving.take());
        self.host.stop().await;
    }

    /// Runs a command that has to work.
    pub(crate) async fn fine(&self, line: &str) -> String {
        let done = self.run(line).await;
        assert_eq!(done.code, 0, "{line}: {done:?}");
        done.out
    }

    pub(crate) async fn json(&self, line: &str) -> Value {
        let out = self.fine(&format!("{line} --output json")).await;
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{line}: {error}: {out}"))
    }

    /// Runs a command in every output form, checks that all have the same content, and answers it.
    async fn in_every_form(&self, line: &str, items: &str, shown: &str) -> Value {
        // Reading records is an operation, with another id each time.
        let read = |text: &str| {
            let mut value: Value = serde_json::from_str(text).unwrap();
            value.as_object_mut().map(|members| members.remove("operationId"));
            value
        };
        let json = read(&self.fine(&format!("{line} -o json")).await);
        let lines = self.fine(&format!("{line} -o jsonl")).await;
        let lines: Vec<Value> = lines.lines().map(read).collect();
        match json[items].as_array() {
            Some(items) => assert_eq!(&lines, items, "{line}"),
            None => assert_eq!(lines, std::slice::from_ref(&json), "{line}"),
        }
        // There is no YAML reader here. A test of the CLI crate reads the YAML.
        let yaml = self.fine(&format!("{line} -o yaml")).await;
        assert!(yaml.contains(shown) && !yaml.starts_with('{'), "{line}: {yaml}");
        let table = self.fine(&format!("{line} -o table")).await;
        assert!(table.contains(shown) && !table.contains('\x1b'), "{line}: {table}");
        json
    }
}

/// Words of a line, with quotes as a shell has them.
pub(crate) fn words(line: &str) -> Vec<String> {
    let (mut words, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

pub(crate) async fn run(
    home: &Path,
    environment: &[(&str, &str)],
    arguments: &[String],
    input: &str,
) -> Done {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memhost-cli"));
    for (name, _) in std::env::vars()
        .filter(|(name, _)| name.starts_with("MEMHOST_") || name.starts_with("XDG_"))
    {
        command.env_remove(name);
    }
    command.env("MEMHOST_CACHE_DIR", memhost_tests::cache_dir());
    command.env("HOME", home).current_dir(home).envs(environment.iter().copied()).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let input = input.to_owned();
    let done = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        // A command that reads no input has closed it already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    });
    let done = done.await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done {
        code: done.status.code().unwrap_or(-1),
        out: text(&done.stdout),
        err: text(&done.stderr),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_have_every_verb() {
    let terminal = Terminal::open(&[]).await;
    let written = terminal.json("record create 'the gate code changes monthly' --agent ada").await;
    let id = written["records"][0]["providerRecordId"].as_str().unwrap().to_owned();
    assert!(
        terminal
            .fine("note 'deploys are frozen on Fridays' --agent ada")
            .await
            .starts_with("noted ")
    );
    assert!(terminal.fine("capture 'something happened' --agent ada").await.contains("captured"));
    terminal.in_every_form("record list --agent ada", "items", "the gate code").await;
    let found =
        terminal.in_every_form(&format!("record show {id} --agent ada"), "", "monthly").await;
    assert_eq!(found["record"]["text"], "the gate code changes monthly");
    let hits = terminal.json("search 'gate code' --agent ada").await;
    assert_eq!(hits["snippets"][0]["handle"]["providerRecordId"], id.as_str());
    terminal.fine(&format!("record update {id} 'the gate code changes weekly' --agent ada")).await;
    let hits = terminal.fine("record search 'gate code' --agent ada").await;
    assert!(hits.contains("weekly") && hits.contains("SCORE"), "{hits}");
    let id = terminal
        .json(
            "search 'gate code' --agent ada",
        )
        .await["snippets"][0]["handle"]["providerRecordId"]
        .clone();
    terminal.fine(&format!("record delete {} --agent ada", id.as_str().unwrap())).await;
    let gone = terminal.run(&format!("record show {} --agent ada", id.as_str().unwrap())).await;
    assert_eq!(gone.code, 3, "{gone:?}");
    assert!(gone.err.contains("memhost record list"), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bindings_secrets_budgets_tokens_and_charges_are_made_shown_changed_and_deleted() {
    let terminal = Terminal::open(&[]).await;
    let t = &terminal;
    t.fine("binding create research --default").await;
    let kept = t.run("binding create other --if-missing").await;
    assert_eq!(
        (kept.code, kept.err.trim()),
        (0, "acme has the default binding `research`; `other` was not made"),
        "{kept:?}"
    );
    assert_eq!(t.run("binding create research --if-missing").await.err, "");
    t.in_every_form("binding list", "items", "research").await;
    let binding = t.in_every_form("binding show research", "", "local-markdown").await;
    t.fine("binding update research --enabled false").await;
    assert_eq!(t.json("binding show research").await["enabled"], false);
    let stale = t
        .run(&format!("binding update research --enabled true --revision {}", binding["revision"]))
        .await;
    assert_eq!(stale.code, 2, "{stale:?}");
    t.fine("binding update research --enabled true").await;
    t.fine("binding assign research --agent ada").await;
    assert!(t.fine("binding resolve --agent ada --why").await.contains("decides"));
    assert!(t.fine("binding grant research --everything --dry-run").await.contains("GRANTED"));

    let origin = "--origin https://api.example.com --as header:authorization:Bearer";
    assert_eq!(
        t.run_with(&format!("secret create API_KEY {origin}"), "hush hush hush\n").await.code,
        0
    );
    let twice = t.run_with(&format!("secret create API_KEY {origin}"), "hush hush hush\n").await;
    assert!(twice.code == 2 && twice.err.contains("memhost secret update"), "{twice:?}");
    t.in_every_form("secret list", "items", "API_KEY").await;
    assert_eq!(t.run_with("secret update API_KEY --as query:key", "another value\n").await.code, 0);
    let secret = t.in_every_form("secret show API_KEY", "", "https://api.example.com").await;
    assert_eq!(secret["usedAs"], json!({"kind": "query", "parameter": "key"}));
    assert!(!secret.to_string().contains("another value"));
    let unpinned = t
        .run_with("secret create OTHER --origin https://api.example.com", "hush hush hush\n")
        .await;
    assert!(unpinned.code == 2 && unpinned.err.contains("--as"), "{unpinned:?}");
    let wrong = t.run_with("secret update API_KEY --as cookie:a", "another value\n").await;
    assert!(wrong.code == 2 && wrong.err.contains("query:PARAMETER"), "{wrong:?}");
    t.fine("secret delete API_KEY").await;
    let none = t.run_with("secret update API_KEY", "x").await;
    assert_eq!((none.code, none.err.contains("memhost secret list")), (3, true), "{none:?}");

    t.fine("budget create --cents 50").await;
    assert_eq!(t.run("budget create --cents 60").await.code, 2);
    t.fine("budget update --warn 0.5").await;
    let budget = t.in_every_form("budget show", "", "month").await;
    assert_eq!(
        (budget["limitCents"].as_f64(), budget["warnShare"].as_f64()),
        (Some(50.0), Some(0.5))
    );
    t.in_every_form("budget list", "items", "month").await;
    t.fine("budget delete").await;
    assert_eq!(t.run("budget show").await.code, 3);

    let made = t.json("token create ada --role agent --agent ada").await;
    let id = made["id"].as_str().unwrap().to_owned();
    t.in_every_form("token list", "items", "ada").await;
    let value = made["value"].as_str().unwrap();
    let env =
        [("MEMHOST_URL", t.url.as_str()), ("MEMHOST_TOKEN", value), ("MEMHOST_COMPANY", "acme")];
    assert_eq!(run(t.home.path(), &env, &words("search something"), "").await.code, 0);
    let hours = t.fine("token list").await;
    assert!(hours.contains(":00 to "), "the last use is known to the hour: {hours}");
    t.in_every_form(&format!("token show {id}"), "", "ada").await;
    let rotated = t.fine(&format!("token rotate {id}")).await;
    assert!(rotated.contains("shown only once"), "{rotated}");
    t.fine(&format!("token delete {id}")).await;
    assert!(!t.json(&format!("token show {id}")).await["revokedAt"].is_null());
    t.fine("token create second --operators --role operator").await;
    assert_eq!(t.json("token list --operators").await["items"].as_array().unwrap().len(), 1);

    t.fine("charge create --kind platform_fee --biller acme-cloud --cents 120").await;
    let charges = t.in_every_form("charge list", "items", "acme-cloud").await;
    assert_eq!(charges["items"][0]["direction"], "debit");
    t.in_every_form("activity list", "items", "research").await;
    t.fine("binding delete research --yes").await;
    assert_eq!(t.run("binding show research").await.code, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn background_work_is_listed_and_shown() {
    let terminal = Terminal::open(&["extracts"]).await;
    let t = &terminal;
    t.fine(
        "binding create default --provider extracts --grants '{\"storageBytes\":1000000}' \
            --default",
    )
    .await;
    t.fine("capture 'job later'").await;
    // Changes in the meantime would make the forms differ.
    eventually("the job ends", async || {
        t.json("job list").await["items"][0]["status"] == "succeeded"
    })
    .await;
    t.in_every_form("operation list", "items", "capture").await;
    let id = t.json("operation list --kind capture").await["items"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    t.in_every_form(&format!("operation show {id}"), "", "capture").await;
    let job = t.json("job list").await["items"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(t.json(&format!("job show {job}")).await["id"], job.as_str());
    let event = r#"{"hookKind":"manual_capture","hookId":"h1",
        "triggeredAt":"2026-01-01T00:00:00Z","waitMs":20000,
        "scope":{"companyId":"acme"},"source":{"kind":"run","companyId":"acme","runId":"r"},
        "payload":{"text":"fact: x"}}"#;
    let made = t.run_with("hook create -o json", event).await;
    assert_eq!(made.code, 0, "{made:?}");
    let delivery = t.json("hook list").await["items"][0]["id"].as_str().unwrap().to_owned();
    t.in_every_form(&format!("hook show {delivery}"), "", "manual_capture").await;
    let all = t.in_every_form("plugin list", "admitted", "extracts").await;
    assert!(all["admitted"].as_array().unwrap().len() >= 2, "{all}");
    t.in_every_form("plugin show extracts", "", "extracts").await;
    assert_eq!(t.run("plugin show nobody").await.code, 3);
    t.fine("plugin scan").await;
    t.in_every_form("cost show --by binding", "rows", "default").await;
    t.in_every_form("evaluation show", "bindings", "default").await;
    assert!(t.fine("stats --days 3").await.contains("operations"));
    t.in_every_form("company list", "items", "acme").await;
    t.fine("company update --days 1 --keep-days deliveries=3").await;
    let shown = t.fine("company show").await;
    assert!(shown.contains("age 1 day,") && shown.contains("deliveries 3 days"), "{shown}");
    let changed = t.fine("activity list --limit 1").await;
    assert!(
        changed.contains("company") && changed.contains("deliveriesMaxAgeDays: 30 → 3"),
        "{changed}"
    );
    t.fine("company delete --confirm acme").await;
    assert!(t.fine("company show").await.contains("erased"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_fetches_every_page() {
    let terminal = Terminal::open(&[]).await;
    let t = &terminal;
    t.fine("binding create default --default").await;
    for index in 0..5 {
        t.fine(&format!("note 'number {index}'")).await;
    }
    let first = t.json("operation list --kind record_upsert --limit 2").await;
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second =
        t.json(&format!("operation list --kind record_upsert --limit 2 --cursor {cursor}")).await;
    assert_ne!(first["items"][0]["id"], second["items"][0]["id"]);
    let all = t.json("operation list --kind record_upsert --limit 2 --all").await;
    assert_eq!((all["items"].as_array().unwrap().len(), all.get("nextCursor")), (5, None));
    let lines = t.fine("operation list --kind record_upsert --limit 2 --all -o jsonl").await;
    assert_eq!(lines.lines().count(), 5, "{lines}");
    assert!(t.fine("operation list --limit 2").await.contains("next page: --cursor"));
    let records = t.json("record list --limit 2 --all").await;
    assert_eq!(records["items"].as_array().unwrap().len(), 5);
    t.fine("binding create other").await;
    let cut = t.json("binding list --limit 1").await;
    let cursor = cut["nextCursor"].as_str().unwrap();
    let rest = t.json(&format!("binding list --limit 1 --cursor {cursor}")).await;
    assert_ne!(cut["items"][0]["key"], rest["items"][0]["key"]);
    assert_eq!(t.json("binding list --limit 1 --all").await["items"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_replaces_the_environment_but_not_flags() {
    let terminal = Terminal::open(&[]).await;
    let home = terminal.home.path();
    let bare = async |line: &str, input: &str| run(home, &[], &words(line), input).await;
    let made = bare(
        &format!("context create here --url {} --token - --company acme", terminal.url),
        TOKEN,
    )
    .await;
    assert_eq!(made.code, 0, "{made:?}");
    assert!(!made.out.contains(TOKEN), "a token is never shown: {made:?}");
    let noted = bare("note 'kept by a context'", "").await;
    assert_eq!(noted.code, 0, "{noted:?}");
    assert!(bare("search context", "").await.out.contains("kept by a context"));
    assert_eq!(
        bare("search context --company other", "").await.code,
        3,
        "the flag goes before the context"
    );
    assert_eq!(bare("company create --company other", "").await.code, 0);
    let other = bare("search context --company other -o json", "").await;
    assert_eq!(
        serde_json::from_str::<Value>(&other.out).unwrap()["snippets"].as_array().unwrap().len(),
        0
    );
    assert_eq!(
        bare("context create away --url http://127.0.0.1:1 --company acme", "").await.code,
        0
    );
    assert_eq!(bare("operation list --context away", "").await.code, 5);
    assert_eq!(bare("context use away", "").await.code, 0);
    assert_eq!(bare("operation list", "").await.code, 5);
    assert_eq!(bare("operation list --context here", "").await.code, 0);
    let with = [("MEMHOST_CONTEXT", "here"), ("MEMHOST_TOKEN", "not the token of the test")];
    assert_eq!(
        run(home, &with, &words("operation list"), "").await.code,
        4,
        "the environment goes before the context"
    );
    let other_name = terminal.url.replace("127.0.0.1", "localhost");
    let elsewhere = bare(&format!("operation list --url {other_name} --context here"), "").await;
    assert!(
        elsewhere.err.contains("requires a token"),
        "the token stays with its host: {elsewhere:?}"
    );
    let listed = bare("context list", "").await.out;
    assert!(
        listed.contains("here") && listed.contains("away") && !listed.contains(TOKEN),
        "{listed}"
    );
    assert_eq!(bare("context delete away", "").await.code, 0);
    assert_eq!(bare("context show away", "").await.code, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_say_what_to_type_next() {
    let terminal = Terminal::open(&[]).await;
    let home = terminal.home.path();
    let with = async |environment: &[(&str, &str)], line: &str| {
        run(home, environment, &words(line), "").await
    };
    let away = with(
        &[("MEMHOST_URL", "http://127.0.0.1:1"), ("MEMHOST_COMPANY", "acme")],
        "operation list",
    )
    .await;
    assert_eq!((away.code, away.err.contains("memhost serve")), (5, true), "{away:?}");
    let unknown =
        with(&[("MEMHOST_URL", &terminal.url), ("MEMHOST_COMPANY", "acme")], "operation list")
            .await;
    assert_eq!(
        (unknown.code, unknown.err.contains("memhost context create")),
        (4, true),
        "{unknown:?}"
    );
    terminal.fine("note hello").await;
    let nameless =
        with(&[("MEMHOST_URL", &terminal.url), ("MEMHOST_TOKEN", TOKEN)], "operation list").await;
    assert_eq!(nameless.code, 2, "{nameless:?}");
    assert!(
        nameless.err.contains("MEMHOST_COMPANY") && nameless.err.contains("acme"),
        "{nameless:?}"
    );
    let typo = with(&[], "oepration list").await;
    assert_eq!((typo.code, typo.err.contains("'operation'")), (2, true), "{typo:?}");
    let first = with(&[("MEMHOST_URL", "http://127.0.0.1:1")], "").await;
    assert_eq!((first.code, first.out.contains("memhost serve")), (0, true), "{first:?}");
    let there = terminal.fine("").await;
    assert!(there.contains("memhost note"), "{there}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manual_pages_and_completions_are_written() {
    let home = tempfile::tempdir().unwrap();
    let done = run(home.path(), &[], &words("man --to pages"), "").await;
    assert_eq!(done.code, 0, "{done:?}");
    let page = std::fs::read_to_string(home.path().join("pages/memhost-binding-create.1")).unwrap();
    assert!(page.contains("\\-\\-provider"), "{page}");
    assert!(!home.path().join("pages/memhost-secret-set.1").exists(), "old names have no page");
    let one = run(home.path(), &[], &words("man operation list"), "").await;
    assert!(one.out.contains(".TH") && one.out.contains("outcome"), "{one:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = run(home.path(), &[], &words(&format!("completions {shell}")), "").await;
        assert!(script.code == 0 && script.out.contains("memhost"), "{shell}: {}", script.err);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tail_shows_new_operations_that_fit_the_filters() {
    let terminal = Terminal::open(&[]).await;
    terminal.fine("note 'before it began'").await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_memhost-cli"));
    command
        .args(["tail", "--kind", "query", "--outcome", "succeeded", "-o", "jsonl"])
        .env("HOME", terminal.home.path());
    command
        .env("MEMHOST_URL", &terminal.url)
        .env("MEMHOST_TOKEN", TOKEN)
        .env("MEMHOST_COMPANY", "acme");
    let mut tail = command.stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(tail.stdout.take().unwrap());
    let (sender, lines) = channel();
    let reading =
        std::thread::spawn(move || out.lines().for_each(|line| drop(sender.send(line.unwrap()))));
    // It shows operations from the moment at which it listens, so operations are made until it
    // does.
    let mut first = None;
    for _ in 0..100 {
        terminal.fine("search before").await;
        first = lines.recv_timeout(Duration::from_millis(100)).ok();
        if first.is_some() {
            break;
        }
    }
    let first: Value = serde_json::from_str(&first.expect("tail showed no operation")).unwrap();
    assert_eq!((&first["kind"], &first["companyId"]), (&"query".into(), &"acme".into()));
    terminal.fine("note 'not asked for'").await;
    terminal.fine("search before -o json").await;
    let next: Value =
        serde_json::from_str(&lines.recv_timeout(Duration::from_secs(20)).unwrap()).unwrap();
    assert_eq!(next["kind"], "query", "the note was filtered out");
    let stopped = Command::new("kill").args(["-INT", &tail.id().to_string()]).status().unwrap();
    assert!(stopped.success() && tail.wait().unwrap().success(), "Ctrl-C is a good end");
    reading.join().unwrap();
    let refused = terminal.run("tail --data-dir .").await;
    assert_ne!(refused.code, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_data_directory_is_for_its_user_only() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let (data, backup) = (home.path().join("data"), home.path().join("backup"));
    for line in
        ["demo --once --data-dir", &format!("store backup --to {} --data-dir", backup.display())]
    {
        let line = format!("{line} {}", data.display());
        let done = run(home.path(), &[("MEMHOST_COMPANY", "acme")], &words(&line), "").await;
        assert_eq!(done.code, 0, "{line}: {done:?}");
    }
    for directory in [data, backup] {
        assert_eq!(
            std::fs::metadata(&directory).unwrap().permissions().mode() & 0o777,
            0o700,
            "{directory:?}"
        );
    }
}
