//! Files of the host and of providers: nobody else can use them, no link in a provider's directory
//! is followed, and what a provider does there costs its neighbours nothing.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use memhost_core::{BackupRequest, ServiceError, restore_backup};
use memhost_tests::{TestHost, caller, query};
use memhost_types::{BindingLimits, OperationErrorCode as Code, Snippet};

const GUEST: &str = "abuses-files";

async fn abused(limits: BindingLimits) -> TestHost {
    let host = TestHost::new(&[GUEST, "echo"]).await.unwrap();
    host.bind("hostile", GUEST, limits).await.unwrap();
    host.bind("innocent", "echo", BindingLimits::default()).await.unwrap();
    host
}

/// The private directory of a company's only binding.
fn directory_of(host: &TestHost, company: &str) -> PathBuf {
    let mut all = std::fs::read_dir(host.data_dir().join("memory").join(company)).unwrap();
    all.next().unwrap().unwrap().path()
}

/// How often the guest succeeded, and its first error.
fn said(answer: &[Snippet]) -> (u64, String) {
    let text = |id: &str| {
        answer
            .iter()
            .find(|snippet| snippet.handle.provider_record_id.as_str() == id)
            .unwrap()
            .text
            .clone()
    };
    (text("got").parse().unwrap(), text("refused"))
}

async fn abuse(host: &TestHost, what: &str) -> (u64, String) {
    said(&host.query("hostile", what).await.unwrap())
}

/// Every path below a directory, without following links.
fn below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            below(&entry.path(), found);
        }
    }
}

fn backup_to(directory: PathBuf) -> BackupRequest {
    BackupRequest { directory, with_vault_key: false }
}

/// The content of `vault.key`, and whether a file below has it.
fn has_vault_key(host: &TestHost, directory: &Path) -> bool {
    let key = std::fs::read(host.data_dir().join("vault.key")).unwrap();
    let mut found = Vec::new();
    below(directory, &mut found);
    found.iter().any(|path| path.is_file() && std::fs::read(path).unwrap() == key)
}

/// A guest swaps a file for a link between the look and the copy. A thread does the same, many
/// times as fast.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abuses_files() {
    let host = abused(BindingLimits::default()).await;
    assert_eq!(abuse(&host, "swap 3").await.0, 3);
    let (directory, has_ended) = (directory_of(&host, "hostile"), Arc::new(AtomicBool::new(false)));
    let ended = Arc::clone(&has_ended);
    let swapped = directory.join("swapped");
    let swapping = std::thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            let _ = std::fs::remove_file(&swapped);
            let _ = std::os::unix::fs::symlink("../../../vault.key", &swapped);
            let _ = std::fs::remove_file(&swapped);
            let _ = std::fs::write(&swapped, "harmless");
        }
    });
    // Other things that a backup must neither copy nor wait for.
    std::os::unix::fs::symlink("../../../vault.key", directory.join("link")).unwrap();
    std::os::unix::fs::symlink("../../..", directory.join("up")).unwrap();
    assert!(Command::new("mkfifo").arg(directory.join("pipe")).status().unwrap().success());
    let mut backups = Vec::new();
    for number in 0..100 {
        let to = host.directory().join(format!("backup-{number}"));
        host.service().backup(backup_to(to.clone())).await.unwrap();
        backups.push(to);
    }
    has_ended.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    for backup in &backups {
        assert!(!has_vault_key(&host, backup), "{}", backup.display());
        let mut found = Vec::new();
        below(backup, &mut found);
        let strange =
            found.iter().find(|path| !path.is_dir() && !path.symlink_metadata().unwrap().is_file());
        assert!(strange.is_none(), "{strange:?}");
    }
    let restored = host.directory().join("restored");
    restore_backup(&backups[0], &restored).unwrap();
    assert!(!has_vault_key(&host, &restored));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directories_that_are_nested_without_end_are_full_and_are_deleted() {
    let host = abused(BindingLimits::default()).await;
    for _ in 0..3 {
        assert_eq!(abuse(&host, "nested").await, (1, "not refused".to_owned()));
    }
    host.service().backup(backup_to(host.directory().join("backup"))).await.unwrap();
    let directory = directory_of(&host, "hostile");
    let outside = host.directory().join("outside");
    std::fs::write(&outside, "kept").unwrap();
    std::os::unix::fs::symlink(host.directory(), directory.join("d/d/up")).unwrap();
    // The guest cannot confirm that it has forgotten anything: an operator gives up what it has.
    let company = memhost_tests::parse("hostile");
    let refused = host.service().transfer().erase_company(&caller(), &company, &[]).await;
    let bindings = match refused {
        Err(
            ServiceError::NotForgotten { bindings, .. }
            | ServiceError::CannotForget { bindings, .. },
        ) => bindings,
        other => panic!("{other:?}"),
    };
    assert_eq!(bindings, [GUEST]);
    assert!(directory.exists());
    host.service()
        .transfer()
        .erase_company(&caller(), &company, &[memhost_tests::parse(GUEST)])
        .await
        .unwrap();
    assert!(!directory.exists());
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "kept");
}

/// What the host keeps for a guest counts as its memory, and what it opens is bounded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_guest_keeps_open_is_bounded_and_dropped_with_its_instance() {
    let limits = BindingLimits { memory_bytes: 8 << 20, ..BindingLimits::default() };
    let host = abused(limits).await;
    for (what, most) in
        [("listings 1000", 256), ("files 1000", 256), ("streams 1000", 128), ("removed 1000", 64)]
    {
        let (got, refused) = abuse(&host, what).await;
        assert!(got > 0 && got <= most, "{what}: {got} {refused}");
        let expected = if what.starts_with("removed") {
            ["quota", "insufficient-memory"]
        } else {
            ["insufficient-memory"; 2]
        };
        assert!(expected.contains(&refused.as_str()), "{what}: {refused}");
        // The next call has an instance that keeps nothing. Large files that were removed are
        // closed on another thread.
        memhost_tests::eventually("there is room for files", async || {
            abuse(&host, "files 5").await.0 == 5
        })
        .await;
        assert_eq!(abuse(&host, "files 5").await, (5, "not refused".to_owned()));
    }
    let used = host.usage("hostile", GUEST).await.unwrap();
    assert!(used.memory_bytes > 4 << 20 && used.memory_bytes <= 8 << 20, "{used:?}");
    let error = host.query("hostile", "random").await.unwrap_err();
    assert!(error.to_string().contains("exceeds limit"), "{error}");
    // A list of handles is as long as the guest's memory and its transfer allow; the call is
    // answered or ended.
    if let Ok(answer) = host.query("hostile", "poll 2").await {
        assert_eq!(said(&answer).0, 40_000);
    }
    assert_eq!(abuse(&host, "files 5").await.0, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_calls_do_the_same_on_a_blocking_thread() {
    let host = abused(BindingLimits::default()).await;
    assert_eq!(abuse(&host, "large 3").await, (3, "not refused".to_owned()));
    let mut left = Vec::new();
    below(&directory_of(&host, "hostile"), &mut left);
    assert!(left.is_empty(), "{left:?}");
    let (listed, refused) = abuse(&host, "list").await;
    assert_eq!((listed, refused.as_str()), (0, "not refused"));
}

/// Files for a listing that takes long.
fn crowd(directory: &Path, files: usize) {
    for number in 0..files {
        std::fs::File::create(directory.join(format!("a name of some length {number:08}")))
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listings_count_as_computing_and_others_are_served_meanwhile() {
    let limits =
        BindingLimits { call_cpu_ms: 300, call_timeout_ms: 60_000, ..BindingLimits::default() };
    let host = abused(limits).await;
    assert_eq!(abuse(&host, "list").await.0, 0);
    crowd(&directory_of(&host, "hostile"), 20_000);
    assert_eq!(abuse(&host, "list").await.0, 20_000);
    host.query("innocent", "hello").await.unwrap();
    let (service, has_ended) = (Arc::clone(host.service()), Arc::new(AtomicBool::new(false)));
    let ended = Arc::clone(&has_ended);
    let innocent = tokio::spawn(async move {
        let mut served = 0;
        while !ended.load(Ordering::Relaxed) {
            service.operations().query(&caller(), query("innocent", "hello")).await.unwrap();
            served += 1;
        }
        served
    });
    let mut hostile = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let service = Arc::clone(host.service());
        hostile.spawn(async move {
            service.operations().query(&caller(), query("hostile", "list 1000000")).await
        });
    }
    while let Some(ended) = hostile.join_next().await {
        let ServiceError::Operation { error, .. } = ended.unwrap().unwrap_err() else {
            panic!("no operation")
        };
        assert!(error.code == Code::TimedOut && error.message.contains("callCpuMs"), "{error:?}");
    }
    has_ended.store(true, Ordering::Relaxed);
    // Four guests on two threads take their turns with it. One listing in one call would be one
    // turn.
    let served = innocent.await.unwrap();
    assert!(served > 5, "the innocent binding was served {served} times");
}

#[tokio::test]
async fn a_name_that_is_not_utf8_hides_no_other_entry() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let host = abused(BindingLimits::default()).await;
    assert_eq!(abuse(&host, "list").await.0, 0);
    let directory = directory_of(&host, "hostile");
    std::fs::write(directory.join(OsStr::from_bytes(b"caf\xe9.txt")), "x").unwrap();
    std::fs::create_dir(directory.join(OsStr::from_bytes(b"\xff"))).unwrap();
    crowd(&directory, 500);
    assert_eq!(abuse(&host, "list").await, (500, "not refused".to_owned()));
    let log = &host.operations("hostile").await.unwrap()[0].log;
    for name in ["`caf\\xe9.txt`", "`\\xff`"] {
        assert!(log.iter().any(|line| line.text.contains(name)), "{name}: {log:?}");
    }
}

/// A host in a process of its own.
struct Process(Child, String);

impl Process {
    fn start(data_dir: &Path, plugins: &Path) -> Self {
        // A careless environment: every new file would be everybody's.
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "umask 0; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_memhost-cli"),
            "serve",
        ]);
        shell.args(["--listen", "127.0.0.1:0", "--token", super::cli::TOKEN]);
        shell.arg("--data-dir").arg(data_dir).arg("--plugins-dir").arg(plugins);
        shell
            .env("HOME", data_dir.parent().unwrap())
            .env("MEMHOST_CACHE_DIR", memhost_tests::cache_dir());
        let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.find_map(|line| {
            line.unwrap().strip_prefix("memhost is listening on ").map(str::to_owned)
        });
        Self(child, url.unwrap())
    }

    async fn run(&self, home: &Path, line: &str) -> super::cli::Done {
        let environment = [
            ("MEMHOST_URL", self.1.as_str()),
            ("MEMHOST_TOKEN", super::cli::TOKEN),
            ("MEMHOST_COMPANY", "acme"),
        ];
        super::cli::run(home, &environment, &super::cli::words(line), "").await
    }

    /// What it takes of the machine's memory, in bytes.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demonstration_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let environment = [("TMPDIR", scratch.path().to_str().unwrap())];
    let done =
        super::cli::run(home.path(), &environment, &super::cli::words("demo --once"), "").await;
    assert!(done.code == 0 && done.out.contains("data in "), "{done:?}");
    let left: Vec<_> =
        std::fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_a_host_writes_is_for_its_user_only() {
    let home = tempfile::tempdir().unwrap();
    let (data, plugins) = (home.path().join("data"), home.path().join("plugins"));
    std::fs::create_dir(&plugins).unwrap();
    let process = Process::start(&data, &plugins);
    let (backup, export) = (home.path().join("backup"), home.path().join("export"));
    for line in [
        "note 'a plan'",
        "search plan",
        &format!("store backup --with-vault-key --to {}", backup.display()),
        &format!("company export --to {}", export.display()),
    ] {
        let done = process.run(home.path(), line).await;
        assert_eq!(done.code, 0, "{line}: {done:?}");
        let says_so = done.err.contains("exported ") && done.err.contains(" lines to ");
        assert_eq!(says_so, line.starts_with("company export"), "{line}: {done:?}");
    }
    drop(process);
    let restored = home.path().join("restored");
    restore_backup(&backup, &restored).unwrap();
    let mut found = vec![data.clone(), backup, restored, export, home.path().join(".config")];
    for directory in found.clone().iter().filter(|path| path.is_dir()) {
        below(directory, &mut found);
    }
    assert!(
        found.iter().any(|path| path.extension().is_some_and(|extension| extension == "md")),
        "{found:?}"
    );
    for path in found.iter().filter(|path| path.exists()) {
        let metadata = path.symlink_metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o077, 0, "{}", path.display());
    }
}

/// As a library, where the process's umask is the embedder's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_that_is_open_to_others_is_closed_and_the_doctor_says_so() {
    let mut host = TestHost::new(&["echo"]).await.unwrap();
    host.bind("acme", "echo", BindingLimits::default()).await.unwrap();
    host.query("acme", "hello").await.unwrap();
    let data = host.data_dir().to_owned();
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let exposed = || {
        let (data, mut found) = (data.clone(), vec![data.clone()]);
        below(&data, &mut found);
        let is_open =
            |path: &&PathBuf| path.symlink_metadata().unwrap().permissions().mode() & 0o077 != 0;
        found
            .iter()
            .filter(is_open)
            .map(|path| path.strip_prefix(&data).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let check = async |host: &TestHost| {
        let all = host.service().monitor().doctor().await;
        let check = all.into_iter().find(|check| check.name == "file permissions").unwrap();
        (check.found, check.advice)
    };
    assert_eq!(check(&host).await.1, "");
    set(&data.join("FORMAT"), 0o644);
    set(&data, 0o755);
    let (found, advice) = check(&host).await;
    assert!(found.contains("others can use 2 files") && found.contains("(mode 755)"), "{found}");
    assert!(advice.contains(&format!("chmod -R go= '{}'", data.display())), "{advice}");
    host.stop().await;
    set(&data.join("store"), 0o755);
    host.start().await.unwrap();
    assert_eq!(check(&host).await.1, "");
    let exposed: Vec<PathBuf> =
        exposed().into_iter().filter(|path| path.components().count() < 3).collect();
    assert!(exposed.is_empty(), "{exposed:?}");
}

/// The attack that was found: many listings of a large directory at once. A host of its own shows
/// what they take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_listings_of_a_large_directory_take_no_memory_and_no_turn() {
    let home = tempfile::tempdir().unwrap();
    let (data, plugins) = (home.path().join("data"), home.path().join("plugins"));
    std::fs::create_dir(&plugins).unwrap();
    for guest in [GUEST, "echo"] {
        std::fs::copy(memhost_tests::guest_file(guest), plugins.join(format!("{guest}.wasm")))
            .unwrap();
    }
    let process = Process::start(&data, &plugins);
    let fine = async |line: &str| {
        let done = process.run(home.path(), line).await;
        assert_eq!(done.code, 0, "{line}: {done:?}");
    };
    let create = format!("binding create hostile --provider {GUEST}");
    memhost_tests::eventually("the guest is admitted", async || {
        process.run(home.path(), &create).await.code == 0
    })
    .await;
    fine("binding grant hostile --everything").await;
    fine("binding create innocent --provider echo").await;
    fine("search list --binding hostile").await;
    let memory = std::fs::read_dir(data.join("memory/acme")).unwrap().flatten();
    let directory = memory
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains("hostile"))
        .unwrap();
    crowd(&directory, 50_000);
    fine("search hello --binding innocent").await;
    let quiet = process.resident();
    let hostile =
        async { process.run(home.path(), "search 'listings 1000' --binding hostile").await };
    let innocent = async {
        let mut slowest = std::time::Duration::ZERO;
        for _ in 0..5 {
            let began = Instant::now();
            fine("search hello --binding innocent").await;
            slowest = slowest.max(began.elapsed());
        }
        slowest
    };
    let (done, slowest) = tokio::join!(hostile, innocent);
    assert!(done.out.contains("insufficient-memory"), "{done:?}");
    let grown = process.resident().saturating_sub(quiet);
    println!(
        "the host grew by {} KiB; the slowest query of a neighbour took {slowest:?}",
        grown >> 10
    );
    assert!(grown < 64 << 20, "the host grew by {grown} bytes");
}
