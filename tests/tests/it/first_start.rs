//! The first start of a host: it answers while it opens, loads the built-in provider from the
//! program's file if that has it compiled, and puts no token into a log.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use memhost_tests::{guest_file, needed};
use serde_json::Value;

use super::cli::TOKEN;

const PROGRAM: &str = env!("CARGO_BIN_EXE_memhost-cli");
/// How long anything may take on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);

/// A home directory with at most one host, which ends with the test.
struct Home {
    directory: tempfile::TempDir,
    host: Option<Child>,
    began: Instant,
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(mut host) = self.host.take() {
            let _ = host.kill();
            let _ = host.wait();
        }
    }
}

impl Home {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), host: None, began: Instant::now() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A program with nothing in its environment that was meant for another host.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("MEMHOST_")) {
            command.env_remove(name);
        }
        command.env("HOME", self.directory.path()).current_dir(self.directory.path());
        command
    }

    /// Starts a host at `socket`, whose output goes into the files `out` and `err`.
    fn serve(&mut self, program: &Path, arguments: &[&str]) {
        let mut serve = self.command(program);
        serve.args(["serve", "--listen", "unix:socket", "--data-dir", "data"]).args(arguments);
        let file = |name| File::create(self.path(name)).unwrap();
        serve.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
        (self.host, self.began) = (Some(serve.spawn().unwrap()), Instant::now());
    }

    fn said(&self) -> String {
        let text = |name| fs::read_to_string(self.path(name)).unwrap_or_default();
        ["out", "err"].map(text).concat()
    }

    /// Waits until the host or its terminal says this.
    fn until_said(&self, text: &str) {
        while !self.said().contains(text) {
            assert!(self.began.elapsed() < PATIENCE, "{text}: {}", self.said());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The status of an answer, and all of it. `None`: nothing listens yet.
    fn get(&self, path: &str, token: &str) -> Option<(u16, String)> {
        let mut stream = UnixStream::connect(self.path("socket")).ok()?;
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: \
             close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some((answer.split_whitespace().nth(1)?.parse().ok()?, answer))
    }

    /// Waits until a path is answered with this status. Answers the time since the start.
    fn until(&self, path: &str, status: u16) -> Duration {
        while self.get(path, "").is_none_or(|(found, _)| found != status) {
            assert!(self.began.elapsed() < PATIENCE, "{path}: {}", self.said());
            std::thread::sleep(Duration::from_millis(2));
        }
        self.began.elapsed()
    }

    /// A metric of the host.
    fn metric(&self, name: &str) -> u64 {
        let (status, answer) = self.get("/metrics", TOKEN).unwrap();
        assert_eq!(status, 200, "{answer}");
        let line = answer.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {answer}")).trim().parse().unwrap()
    }

    /// A note through the host at `socket`.
    fn note(&self) -> Output {
        let mut note = self.command(PROGRAM);
        note.args(["note", "frozen on Fridays", "--company", "acme", "--url", "unix:socket"]);
        note.env("MEMHOST_TOKEN", TOKEN).output().unwrap()
    }
}

/// A copy of the program that carries this component, compiled.
fn carrying(home: &Home, component: &[u8]) -> PathBuf {
    let program = home.path("memhost");
    fs::copy(PROGRAM, &program).unwrap();
    memhost_sandbox::carry_compiled(&program, component).unwrap();
    program
}

/// A copy of the program that carries its own component.
fn carrying_its_own(home: &Home) -> PathBuf {
    let program = home.path("memhost");
    fs::copy(PROGRAM, &program).unwrap();
    let size = || fs::metadata(&program).unwrap().len();
    let carry = || {
        let carried = home.command(PROGRAM).arg("carry-compiled").arg(&program).output().unwrap();
        assert!(carried.status.success(), "{carried:?}");
        size()
    };
    let before = size();
    let once = carry();
    assert!(once > before + 1_000_000);
    assert_eq!(carry(), once, "what an earlier run has appended is replaced");
    program
}

/// Whether this processor has what the carried code may use.
#[cfg(target_arch = "x86_64")]
fn is_usual() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("fma")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("lzcnt")
}

#[cfg(not(target_arch = "x86_64"))]
fn is_usual() -> bool {
    true
}

#[test]
fn a_program_that_carries_its_provider_compiled_compiles_nothing() {
    let mut home = Home::new();
    let program = carrying_its_own(&home);
    home.serve(&program, &["--token", TOKEN]);
    let health = home.until("/healthz", 200);
    home.until("/readyz", 200);
    let noted = home.note();
    let answered = home.began.elapsed();
    assert!(noted.status.success(), "{noted:?}");
    eprintln!("a first start answered /healthz after {health:?}, a note after {answered:?}");
    let said = home.said();
    assert_eq!(said.contains("compiles the built-in provider"), !is_usual(), "{said}");
    assert_eq!(home.metric("memhost_components_compiled_total"), u64::from(!is_usual()), "{said}");
    let compiled = fs::read_dir(home.path("data/compiled")).unwrap().count();
    assert_eq!(compiled, usize::from(!is_usual()), "what is carried needs no copy");
}

#[test]
fn what_does_not_fit_is_compiled() {
    let mut home = Home::new();
    let program = carrying_its_own(&home);
    let whole = fs::read(&program).unwrap();
    // In the magic, the seal and the code.
    for from_end in [1, 17, 100_000] {
        let mut damaged = whole.clone();
        let place = damaged.len() - from_end;
        damaged[place] ^= 0x20;
        fs::write(&program, damaged).unwrap();
        compiles(&mut home, &program);
    }
    let other = fs::read(guest_file("stamped")).unwrap();
    let program = carrying(&home, &other);
    compiles(&mut home, &program);
}

/// A first start with this program compiles the built-in provider, which works.
fn compiles(home: &mut Home, program: &Path) {
    let _ = fs::remove_dir_all(home.path("data"));
    home.serve(program, &["--token", TOKEN]);
    home.until("/readyz", 200);
    assert_eq!(home.metric("memhost_components_compiled_total"), 1);
    let noted = home.note();
    assert!(noted.status.success(), "{noted:?}");
    let mut host = home.host.take().unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
}

#[test]
fn a_host_answers_while_it_compiles_and_commands_wait_for_it() {
    let mut home = Home::new();
    home.serve(Path::new(PROGRAM), &["--token", TOKEN]);
    let health = home.until("/healthz", 200);
    let (noted, starting) = std::thread::scope(|scope| {
        let noting = scope.spawn(|| home.note());
        let mut starting = Vec::new();
        loop {
            let (status, answer) = home.get("/info", "").unwrap();
            if status == 200 {
                break;
            }
            starting.push((status, answer));
            assert_eq!(home.get("/healthz", "").unwrap().0, 200);
            assert!(home.began.elapsed() < PATIENCE, "{}", home.said());
            std::thread::sleep(Duration::from_millis(5));
        }
        let opened = home.began.elapsed();
        eprintln!("a first start answered /healthz after {health:?}, and was open at {opened:?}");
        (noting.join().unwrap(), starting)
    });
    assert!(starting.len() > 1, "{starting:?}");
    for (status, answer) in &starting {
        assert_eq!(*status, 503, "{answer}");
        assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
        assert!(answer.contains("\r\nx-request-id: "), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let problem: Value = serde_json::from_str(body).unwrap();
        assert_eq!(problem["code"], "starting", "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.starts_with("the host is still starting: it "), "{detail}");
    }
    let (_, last) = starting.last().unwrap();
    assert!(last.contains("it compiles the built-in provider for this processor, which"), "{last}");
    let waited = String::from_utf8(noted.stderr).unwrap();
    assert!(noted.status.success(), "{waited}");
    assert_eq!(waited.matches("the host is still starting: it ").count(), 1, "{waited}");
    assert!(waited.contains("waiting up to 30 s\n"), "{waited}");
    let said = home.said();
    assert!(said.contains("\nmemhost compiles the built-in provider"), "{said}");
}

#[test]
fn a_new_token_is_in_no_log_but_in_a_file_for_the_user_alone() {
    let mut home = Home::new();
    let file = home.path("data/operator-token");
    let mut tokens = Vec::new();
    for (arguments, is_new) in [
        (&[][..], true),
        (&[], false),
        (&["--new-token"], true),
        (&["--new-token", "--print-address", "json"], true),
    ] {
        home.serve(Path::new(PROGRAM), arguments);
        home.until("/readyz", 200);
        home.until_said(if arguments.contains(&"json") { "storeId" } else { "listening on" });
        let token = fs::read_to_string(&file).unwrap().trim().to_owned();
        let said = home.said();
        assert!(token.starts_with("mh_") && !said.contains(&token), "{said}");
        assert!(!said.contains("mh_") && !said.contains("link="), "{said}");
        assert_eq!(said.contains("data/operator-token"), is_new, "{said}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(home.get("/metrics", &token).unwrap().0, 200);
        assert_eq!(tokens.last() != Some(&token), is_new, "{said}");
        tokens.push(token);
        let mut host = home.host.take().unwrap();
        host.kill().unwrap();
        host.wait().unwrap();
    }
    let out = fs::read_to_string(home.path("out")).unwrap();
    assert!(serde_json::from_str::<Value>(&out).is_ok(), "one line of JSON: {out}");
}

/// A person has two terminals, and types in the second one before the host is open.
#[test]
fn on_a_terminal_the_token_is_shown_and_the_first_note_needs_nothing_else() {
    let Some(_) = needed(Command::new("script").arg("--version").output()) else { return };
    let mut home = Home::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let line = format!("'{PROGRAM}' serve --listen {free} --data-dir data --new-token");
    let mut terminal = home.command("script");
    terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    terminal.stdin(Stdio::piped()).stdout(File::create(home.path("out")).unwrap());
    home.host = Some(terminal.spawn().unwrap());
    while std::net::TcpStream::connect(free).is_err() {
        assert!(home.began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut note = home.command(PROGRAM);
    note.args(["note", "frozen on Fridays", "--company", "acme"]);
    let noted = note.env("MEMHOST_URL", format!("http://{free}")).output().unwrap();
    assert!(noted.status.success(), "{noted:?}");
    let waited = String::from_utf8(noted.stderr).unwrap();
    assert!(waited.contains("the host is still starting"), "{waited}");
    home.until_said("saved as the context `local`");
    let said = home.said();
    assert!(said.contains("shown only once:") && said.contains("  mh_"), "{said}");
    assert!(said.contains("/sign-in?link="), "{said}");
    assert!(!home.path("data/operator-token").exists());
}

#[test]
fn what_is_wrong_with_a_start_is_said_as_before() {
    let mut home = Home::new();
    home.serve(Path::new(PROGRAM), &[]);
    home.until("/readyz", 200);
    fs::create_dir(home.path("other")).unwrap();
    fs::write(home.path("other/letter"), "not a store").unwrap();
    for (listen, data_dir, wanted) in [
        ("unix:another", "data", "is in use by another process; stop that host first"),
        ("unix:socket", "data", "is in use by another process; stop that host first"),
        ("unix:socket", "fresh", "cannot listen on unix:socket: "),
        ("unix:another", "other", "is not a memhost data directory"),
    ] {
        let mut serve = home.command(PROGRAM);
        serve.args(["serve", "--listen", listen, "--data-dir", data_dir]);
        let done = serve.output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(said.contains(wanted), "{listen} {data_dir}: {said}");
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(done.stdout.is_empty(), "{listen} {data_dir}");
        assert!(!home.path("another").exists(), "the socket is gone");
        assert!(data_dir == "data" || !home.path(data_dir).join("admin-token").exists());
    }
}
