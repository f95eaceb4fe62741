//! For tests: a PostgreSQL of this process, with a database for each of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls};

pub use self::own::OwnServer;

mod own;

struct Server {
    directory: PathBuf,
    /// It is stopped and its directory removed when its standard input is closed, which is at the
    /// latest when this process ends.
    process: Child,
}

/// The programs of the newest PostgreSQL of this machine. None where there is none.
fn programs() -> Option<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|path| path.join("postgres").exists())
        .collect();
    all.sort();
    all.pop()
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// PostgreSQL refuses to run as root.
fn as_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

fn start() -> Option<Server> {
    let directory = directory("")?;
    initialize(&directory);
    Some(run(directory, &[], &[]))
}

/// A directory that the user of a server may write to. None where no PostgreSQL is installed.
fn directory(name: &str) -> Option<PathBuf> {
    if programs().is_none() {
        assert!(
            std::env::var_os("MEMHOST_TESTS_NEED_TOOLS").is_none(),
            "no PostgreSQL is installed: type `apt-get install postgresql`"
        );
        eprintln!("skipped: no PostgreSQL is installed; `apt-get install postgresql` installs it");
        return None;
    }
    // Another user must reach it, and the path of a socket must be short.
    let base = if is_root() { PathBuf::from("/tmp") } else { std::env::temp_dir() };
    Some(made(base.join(format!("memhost-postgres-{}{name}", std::process::id()))))
}

fn made(directory: PathBuf) -> PathBuf {
    std::fs::create_dir_all(&directory).unwrap();
    if is_root() {
        assert!(Command::new("chown").arg("postgres").arg(&directory).status().unwrap().success());
    }
    directory
}

fn does(command: &mut Command) {
    let output = command.current_dir("/").output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn initialize(directory: &Path) {
    does(
        as_user(&programs().unwrap().join("initdb"))
            .args(["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=trust"])
            .arg("--username=memhost")
            .arg(directory.join("data")),
    );
}

/// Starts a server on its directory, with settings and variables of its own.
fn run(directory: PathBuf, settings: &[&str], variables: &[(&str, &str)]) -> Server {
    let shown = directory.display();
    let mut program = String::from("env");
    for (name, value) in variables {
        write!(program, " '{name}={value}'").unwrap();
    }
    write!(program, " '{}'", programs().unwrap().join("postgres").display()).unwrap();
    for setting in settings {
        write!(program, " -c {setting}").unwrap();
    }
    let shell = format!(
        "{program} -D '{shown}/data' -k '{shown}' -c listen_addresses= -c max_connections=400 & \
         child=$!; cat; kill -QUIT $child; wait $child; rm -rf '{shown}'",
    );
    let log = std::fs::File::create(directory.join("log")).unwrap();
    let process = as_user(Path::new("/bin/sh"))
        .args(["-c", &shell])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    Server { directory, process }
}

fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(start).as_ref()
}

/// The length of the server's log, in bytes.
///
/// # Panics
/// Where it has none.
pub fn log_len() -> usize {
    log_from(0).len()
}

/// What the server has logged from a byte on.
///
/// # Panics
/// Where it has no log.
pub fn log_from(begin: usize) -> String {
    let log = std::fs::read(server().unwrap().directory.join("log")).unwrap();
    String::from_utf8_lossy(&log[begin..]).into_owned()
}

/// A connection that belongs to no store.
///
/// # Panics
/// Where the server does not answer within 30 seconds.
pub async fn client(address: &str) -> Client {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match tokio_postgres::connect(address, NoTls).await {
            Ok((client, connection)) => {
                tokio::spawn(connection);
                return client;
            }
            Err(error) => {
                if Instant::now() > until {
                    panic!("{error}\n{}", log_from(0));
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// The address of a new, empty database. None where no PostgreSQL is installed, unless
/// `MEMHOST_TESTS_NEED_TOOLS` is set.
///
/// # Panics
/// Where a tool is needed and missing, or the server does not start.
pub async fn database() -> Option<String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let socket = server()?.directory.display().to_string().replace('/', "%2F");
    let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let admin = client(&format!("postgres://memhost@{socket}/postgres")).await;
    admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    Some(format!("postgres://memhost@{socket}/{name}"))
}
