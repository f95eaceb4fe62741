//! The commands for authors: a project that builds without this repository, calls of one build, and
//! replays.

use std::path::{Path, PathBuf};
use std::process::Command;

use memhost_tests::{guest_file, needed, repository, stamped};
use serde_json::{Value, json};

use crate::cli::{Done, Terminal, run, words};

async fn bare(home: &Path, line: &str) -> Done {
    run(home, &[], &words(line), "").await
}

async fn fine(home: &Path, line: &str) -> String {
    let done = bare(home, line).await;
    assert_eq!(done.code, 0, "{line}: {done:?}");
    done.out
}

async fn json(home: &Path, line: &str) -> Value {
    serde_json::from_str(&fine(home, line).await).unwrap()
}

/// A build of `stamped` in a file.
fn build(home: &Path, name: &str, stamp: Value) -> PathBuf {
    let path = home.join(name);
    std::fs::write(&path, stamped(stamp).unwrap()).unwrap();
    path
}

fn cargo(project: &Path, arguments: &[&str]) {
    // Built once and kept between runs, like an author's directory.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("author");
    let done = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(project)
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_NET_OFFLINE", "true")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WRAPPER")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "cargo {arguments:?}: {said}{}",
        String::from_utf8_lossy(&done.stdout)
    );
}

/// Projects are built one after the other: they share what is built.
static BUILDS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Natively, and as a component. Answers where it was built: in the same directory each time.
async fn test_and_build(project: &Path) -> PathBuf {
    let _one_at_a_time = BUILDS.lock().await;
    let project = project.to_owned();
    let built = tokio::task::spawn_blocking(move || {
        let projects = Path::new(env!("CARGO_TARGET_TMPDIR")).join("author-projects");
        let place = projects.join(project.file_name().unwrap());
        in_step(&project, &place);
        cargo(&place, &["test", "--quiet"]);
        cargo(&place, &["wasm", "--quiet"]);
        place
    });
    built.await.unwrap()
}

/// Brings a project that was built before in step with a new one. Files that are the same stay, so
/// that nothing is compiled again for them.
fn in_step(new: &Path, built: &Path) {
    std::fs::create_dir_all(built).unwrap();
    for entry in std::fs::read_dir(built).unwrap().map(Result::unwrap) {
        let (path, is_there) = (entry.path(), new.join(entry.file_name()).exists());
        match path.is_dir() {
            _ if is_there => {}
            true => std::fs::remove_dir_all(path).unwrap(),
            false => std::fs::remove_file(path).unwrap(),
        }
    }
    for entry in std::fs::read_dir(new).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), built.join(entry.file_name()));
        if from.is_dir() {
            in_step(&from, &to);
        } else if std::fs::read(&from).unwrap() != std::fs::read(&to).unwrap_or_default() {
            std::fs::copy(from, to).unwrap();
        }
    }
}

fn versions(lock: &str) -> Vec<(String, String)> {
    let value = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
    let lines: Vec<&str> = lock.lines().collect();
    let named = lines.windows(2).filter(|pair| pair[0].starts_with("name = "));
    named.map(|pair| (value(pair[0]), value(pair[1]))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_project_is_tested_and_built_offline_and_serves() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let said = fine(home, "plugin new red-thread").await;
    assert!(said.contains("cargo wasm") && said.contains("plugin check"), "{said}");
    let again = bare(home, "plugin new red-thread").await;
    assert_eq!((again.code, again.err.contains("exists; give another")), (2, true), "{again:?}");
    let project = test_and_build(&home.join("red-thread")).await;
    let ours = versions(&std::fs::read_to_string(repository().join("Cargo.lock")).unwrap());
    let theirs = versions(&std::fs::read_to_string(project.join("Cargo.lock")).unwrap());
    let strangers: Vec<_> =
        theirs.iter().filter(|one| one.0 != "red-thread" && !ours.contains(one)).collect();
    assert!(strangers.is_empty() && theirs.len() > 10, "{strangers:?}");
    let file =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("author/wasm32-wasip2/release/red_thread.wasm");
    let inspected = fine(home, &format!("plugin inspect {}", file.display())).await;
    assert!(inspected.contains("red-thread 0.1.0"), "{inspected}");
    let calls =
        "capture 'The gate is green' -- query 'Which gate is green?' -- query 'no such thing'";
    let told = fine(home, &format!("plugin run {} -- {calls}", file.display())).await;
    for wanted in [
        "captured ",
        "The gate is green",
        "info   red_thread: 1 of 1 records",
        "instructions, ",
        " MiB",
    ] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_project_for_a_service_is_tested_and_built_offline_and_says_what_it_asks_for() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fine(home, "plugin new blue-thread --http").await;
    test_and_build(&home.join("blue-thread")).await;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("author/wasm32-wasip2/release/blue_thread.wasm");
    let inspected = fine(home, &format!("plugin inspect {}", file.display())).await;
    for wanted in ["blue-thread 0.1.0", "{{config:/url}}", "NOTES_API_KEY"] {
        assert!(inspected.contains(wanted), "{wanted}: {inspected}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_project_in_another_language_has_a_recipe_and_the_contract() {
    let home = tempfile::tempdir().unwrap();
    for (language, source) in [("python", "notes.py"), ("javascript", "notes.js"), ("c", "notes.c")]
    {
        let said =
            fine(home.path(), &format!("plugin new {language}-thread --lang {language}")).await;
        assert!(
            said.contains("./build.sh")
                && said.contains(&format!("check target/{language}-thread.wasm")),
            "{said}"
        );
        let project = home.path().join(format!("{language}-thread"));
        for path in [source, "build.sh", "README.md", "vendor/wit/provider.wit"] {
            assert!(project.join(path).is_file(), "{language}: {path}");
        }
        let text = std::fs::read_to_string(project.join(source)).unwrap();
        assert!(
            text.contains(&format!("{language}-thread")) && !text.contains("notes-"),
            "{language}"
        );
        let checked =
            Command::new("bash").arg("-n").arg(project.join("build.sh")).status().unwrap();
        assert!(checked.success(), "{language}");
    }
    for more in ["--http", "--ci", "--sdk sdk"] {
        let refused = bare(home.path(), &format!("plugin new green-thread --lang c {more}")).await;
        assert_eq!((refused.code, refused.err.contains("--lang")), (2, true), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_project_in_c_is_built_by_its_recipe_and_keeps_every_rule() {
    // The tools that `just examples c` installs, so that the recipe finds them where it would put
    // them.
    let tools = repository().join("target");
    let is_there = |name: &&str| tools.join(name).exists();
    let missing =
        ["tools/bin/wit-bindgen", "venv-ziglang"].into_iter().find(|name| !is_there(name));
    let found = missing
        .map_or(Ok(()), |name| Err(format!("target/{name} does not exist; run `just examples c`")));
    if needed(found).is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    fine(home.path(), "plugin new red-thread --lang c").await;
    let project = home.path().join("red-thread");
    std::fs::create_dir(project.join("target")).unwrap();
    for name in ["tools", "venv-ziglang"] {
        std::os::unix::fs::symlink(tools.join(name), project.join("target").join(name)).unwrap();
    }
    let recipe = project.join("build.sh");
    let done =
        tokio::task::spawn_blocking(move || Command::new(recipe).output().unwrap()).await.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let file = project.join("target/red-thread.wasm");
    let checked = fine(&project, &format!("plugin check {}", file.display())).await;
    assert!(checked.contains("red-thread 0.1.0"), "{checked}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_measured_and_the_measure_is_the_same_each_time() {
    let home = tempfile::tempdir().unwrap();
    let file = guest_file("reference");
    let line = format!(
        "plugin run {} -o json -- upsert 'one gate' 'two gates' -- query gate -- describe",
        file.display()
    );
    let (first, second) = (json(home.path(), &line).await, json(home.path(), &line).await);
    let calls = |told: &Value| told["calls"].as_array().unwrap().clone();
    assert_eq!(calls(&first).len(), 3);
    for (one, other) in calls(&first).iter().zip(calls(&second)).skip(1).take(1) {
        let instructions = one["took"]["instructions"].as_u64().unwrap();
        assert!(instructions > 10_000, "{one}");
        // Ids are derived from the operation's id, so they differ between runs.
        let ratio = other["took"]["instructions"].as_f64().unwrap() / instructions as f64;
        assert!((0.99..1.01).contains(&ratio), "{one} {other}");
        assert!(one["took"]["memoryBytes"].as_u64().unwrap() >= 1 << 16, "{one}");
    }
    assert_eq!(calls(&first)[1]["answer"]["snippets"].as_array().unwrap().len(), 2);
    assert_eq!(calls(&first)[2]["answer"]["description"]["providerKey"], "reference");
    // More work takes more.
    let much = format!(
        "plugin run {} -o json -- upsert {} -- query gate",
        file.display(),
        "'a gate' ".repeat(50)
    );
    let much = json(home.path(), &much).await;
    let instructions = |told: &Value| told["calls"][1]["took"]["instructions"].as_u64().unwrap();
    assert!(instructions(&much) > instructions(&first) * 3, "{much}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_data_of_a_call_is_deleted_or_kept() {
    let home = tempfile::tempdir().unwrap();
    let file = guest_file("reference").display().to_string();
    let count = async |line: String| {
        let told = json(home.path(), &line).await;
        told["calls"].as_array().unwrap().last().unwrap()["answer"]["items"]
            .as_array()
            .unwrap()
            .len()
    };
    for _ in 0..2 {
        assert_eq!(count(format!("plugin run {file} -o json -- upsert one -- list")).await, 1);
    }
    for kept in 1..=2 {
        assert_eq!(
            count(format!("plugin run {file} --keep here -o json -- upsert one -- list")).await,
            kept
        );
    }
    let other = guest_file("echo").display().to_string();
    let foreign = bare(home.path(), &format!("plugin run {other} --keep here -- describe")).await;
    assert_eq!((foreign.code, foreign.err.contains("`reference`")), (2, true), "{foreign:?}");
    // The job that a capture leaves is run, and its operation is shown.
    let capture = r#"'{"payload":{"text":"residue"},"mode":"capture_residue"}'"#;
    let told = fine(home.path(), &format!("plugin run {file} -- capture {capture} -- list")).await;
    assert!(told.contains("extraction:") && told.contains("residue"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_fails_says_why_and_shows_what_was_logged() {
    let home = tempfile::tempdir().unwrap();
    let traps = build(
        home.path(),
        "traps.wasm",
        json!({"key": "stamped", "version": "1.0.0", "traps": true}),
    );
    let failed =
        bare(home.path(), &format!("plugin run {} -- query x -- list", traps.display())).await;
    assert_ne!(failed.code, 0, "{failed:?}");
    assert!(
        failed.err.contains("crashed") && failed.out.contains("as the stamp says"),
        "{failed:?}"
    );
    assert!(!failed.out.contains("list:"), "nothing is called after it: {failed:?}");
    let loops = guest_file("loops-in-call").display().to_string();
    let limits = r#"--limits '{"callCpuMs":100}'"#;
    let ended = bare(home.path(), &format!("plugin run {loops} {limits} -- query x")).await;
    assert!(ended.code != 0 && ended.err.contains("callCpuMs"), "{ended:?}");
    let none = bare(home.path(), "plugin run nothing.wasm -- describe").await;
    assert_eq!((none.code, none.err.contains("nothing.wasm")), (2, true), "{none:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_network_is_reached_only_if_that_is_granted() {
    let home = tempfile::tempdir().unwrap();
    // A port without a listener: either the host refuses the request, or the connection is refused.
    let stamp = json!({"key": "stamped", "version": "1.0.0", "origin": "http://127.0.0.1:9"});
    let file = build(home.path(), "sends.wasm", stamp);
    let send = r#"'{"query":"{\"method\":\"GET\",\"scheme\":\"http\",\"authority\":\"127.0.0.1:9\",\"path\":\"/\"}"}'"#;
    let asked = async |flag: &str| {
        let told = json(
            home.path(),
            &format!("plugin run {} {flag} -o json -- query {send}", file.display()),
        )
        .await;
        (
            told["calls"][0]["answer"]["snippets"][0]["text"].to_string(),
            told["calls"][0]["operation"]["log"].to_string(),
        )
    };
    let (refused, log) = asked("").await;
    assert!(refused.contains("refused") && log.contains("not granted"), "{refused} {log}");
    let dev = bare(
        home.path(),
        "plugin dev --into . --build-command true --artifact x.wasm --allow-network",
    )
    .await;
    assert!(dev.code == 2 && dev.err.contains("--allow-network"), "{dev:?}");
    let (_, log) = asked("--allow-network").await;
    assert!(!log.contains("not granted"), "{log}");
}

const FULL: &str = r#"{"retention":{"snapshots":"full"}}"#;

/// A host with version 1 of `stamped` bound, which counts in its storage.
async fn counting(policy: &str) -> (Terminal, PathBuf, PathBuf) {
    let terminal = Terminal::open(&[]).await;
    let stamp = |version: &str| json!({"key": "stamped", "version": version, "storage": 1 << 20});
    let home = terminal.home.path();
    let (one, two) =
        (build(home, "one.wasm", stamp("1.0.0")), build(home, "two.wasm", stamp("2.0.0")));
    std::fs::copy(&one, terminal.host.directory().join("plugins/one.wasm")).unwrap();
    terminal.fine("plugin scan").await;
    let grants = r#"--grants '{"storageBytes":1048576}'"#;
    terminal
        .fine(&format!(
            "binding create default --provider stamped {grants} --policy '{policy}' --default"
        ))
        .await;
    (terminal, one, two)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_is_replayed_on_a_copy_of_the_stored_data() {
    let (mut terminal, _, two) = counting(FULL).await;
    let captured = terminal.json("capture 'something happened'").await["operationId"]
        .as_str()
        .unwrap()
        .to_owned();
    let asked = terminal.json("search anything").await["operationId"].as_str().unwrap().to_owned();
    let backup = terminal.home.path().join("backup");
    terminal.fine(&format!("store backup --to {}", backup.display())).await;
    let data = terminal.host.data_dir().display().to_string();
    let busy =
        terminal.run(&format!("plugin replay {asked} {} --data-dir {data}", two.display())).await;
    assert!(busy.code == 2 && busy.err.contains("a host uses it"), "{busy:?}");
    terminal.end().await;
    let before = tree(Path::new(&data));
    for state in [format!("--data-dir {data}"), format!("--backup {}", backup.display())] {
        let replay = format!("plugin replay {asked} {} --company acme {state}", two.display());
        let told = fine(terminal.home.path(), &replay).await;
        for wanted in [
            "--- stamped 1.0.0",
            "+++ stamped 2.0.0",
            "version 1.0.0",
            "version 2.0.0",
            "2.0.0 from 1.0.0",
            &captured,
        ] {
            assert!(told.contains(wanted), "{wanted}: {told}");
        }
        let told = json(terminal.home.path(), &format!("{replay} -o json")).await;
        assert_eq!(
            (&told["isSame"], told["before"]["took"].is_object()),
            (&Value::Bool(false), true),
            "{told}"
        );
    }
    // A serving host would roll this build back. A replay shows the error.
    let home = terminal.home.path();
    let traps = build(
        home,
        "traps.wasm",
        json!({"key": "stamped", "version": "3.0.0", "traps": true, "storage": 1 << 20}),
    );
    let told = fine(
        home,
        &format!("plugin replay {asked} {} --company acme --data-dir {data}", traps.display()),
    )
    .await;
    assert!(told.contains("+error:") && told.contains("crashed"), "{told}");
    // A service behind the provider has what was written: a second time only where the author says
    // so.
    let write = format!(
        "plugin replay {captured} {} --company acme --data-dir {data} --allow-network",
        two.display()
    );
    let refused = bare(home, &write).await;
    assert!(refused.code == 2 && refused.err.contains("--repeat-writes"), "{refused:?}");
    fine(home, &format!("{write} --repeat-writes")).await;
    assert_eq!(tree(Path::new(&data)), before, "the directory was changed");
}

/// Every file with its length.
fn tree(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(tree(&entry.path())),
            false => all.push((entry.path(), entry.metadata().unwrap().len())),
        }
    }
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_against_a_running_host_compares_with_the_record() {
    let (terminal, one, two) = counting(FULL).await;
    let t = &terminal;
    let asked = t.json("search anything").await["operationId"].as_str().unwrap().to_owned();
    let same = t.fine(&format!("plugin replay {asked} {}", one.display())).await;
    assert!(
        same.contains("as recorded") && same.contains("0 records that the host lists"),
        "{same}"
    );
    let other = t.fine(&format!("plugin replay {asked} {} --empty", two.display())).await;
    assert!(
        other.contains("an empty store") && other.contains("providerRecordId: \"2.0.0\""),
        "{other}"
    );
    let both = t
        .json(&format!(
            "plugin replay {asked} {} --against {} --empty",
            two.display(),
            one.display()
        ))
        .await;
    assert_eq!(both["before"]["answer"]["snippets"][0]["text"], "version 1.0.0");
    assert_eq!(both["after"]["answer"]["snippets"][0]["text"], "version 2.0.0");
    // The build under test starts with the records that the host lists.
    t.fine(&format!("binding create notes --policy '{FULL}'")).await;
    t.fine("note 'the gate is green' --binding notes").await;
    let asked =
        t.json("search gate --binding notes").await["operationId"].as_str().unwrap().to_owned();
    let reference = guest_file("reference").display().to_string();
    let (own, foreign) = (
        t.fine(&format!("operation show {asked}")).await,
        t.json(&format!("plugin replay {asked} {reference}")).await,
    );
    assert!(own.contains("local-markdown"), "{own}");
    assert_eq!(foreign["after"]["answer"]["recordCount"], 1, "{foreign}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_without_a_snapshot_says_how_to_keep_one() {
    let (terminal, _, two) = counting("{}").await;
    let asked = terminal.json("search anything").await["operationId"].as_str().unwrap().to_owned();
    let told = terminal.run(&format!("plugin replay {asked} {}", two.display())).await;
    assert_eq!(
        (told.code, told.err.contains("snapshots") && told.err.contains("binding update default")),
        (2, true),
        "{told:?}"
    );
    let missing = terminal
        .run(&format!("plugin replay 0197aaaa-0000-7000-8000-000000000000 {}", two.display()))
        .await;
    assert_eq!(missing.code, 3, "{missing:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_memory_operation_keeps_its_request() {
    let terminal = Terminal::open(&["reference"]).await;
    let t = &terminal;
    let grants = r#"--grants '{"storageBytes":1048576}'"#;
    t.fine(&format!(
        "binding create default --provider reference {grants} --policy '{FULL}' --default"
    ))
    .await;
    let id = t.json("note 'the gate is green'").await["records"][0]["providerRecordId"]
        .as_str()
        .unwrap()
        .to_owned();
    let replayed = async |kinds: &[&str]| {
        let all = t.json("operation list --all").await;
        for kind in kinds {
            let operation = all["items"]
                .as_array()
                .unwrap()
                .iter()
                .find(|operation| operation["kind"] == *kind)
                .unwrap();
            let id = operation["id"].as_str().unwrap();
            assert!(operation["payload"]["text"].is_string(), "{operation}");
            let told =
                t.run(&format!("plugin replay {id} {}", guest_file("reference").display())).await;
            assert_eq!(told.code, 0, "{kind}: {told:?}");
        }
    };
    t.fine("capture 'the door is blue'").await;
    t.fine("search gate").await;
    t.fine("record list").await;
    t.fine(&format!("record show {id}")).await;
    replayed(&["record_upsert", "capture", "query", "list", "get"]).await;
    // What is corrected or forgotten is in no request of before.
    t.fine(&format!("correct {id} 'the gate is red'")).await;
    replayed(&["correct", "capture"]).await;
    t.fine(&format!("forget {id}")).await;
    replayed(&["forget", "capture"]).await;
    let left = t.json("operation list --all").await.to_string();
    assert!(!left.contains("the gate is green") && !left.contains("the gate is red"), "{left}");
}
