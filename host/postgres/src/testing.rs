//! For tests: a PostgreSQL of this process, with a database for each of them, and a PgBouncer in
//! front of it.

use std::fmt::Write as _;
use std::os::unix::net::UnixStream;
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

/// PgBouncer's program, as Debian installs it.
const POOLER: &str = "/usr/sbin/pgbouncer";
/// The sessions that it has in each database: fewer than a host has connections.
pub const POOLED: usize = 4;

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

fn start_pooler() -> Option<Server> {
    let server = server()?;
    if !Path::new(POOLER).exists() {
        assert!(
            std::env::var_os("MEMHOST_TESTS_NEED_TOOLS").is_none(),
            "no PgBouncer is installed: type `apt-get install pgbouncer`"
        );
        eprintln!("skipped: no PgBouncer is installed; `apt-get install pgbouncer` installs it");
        return None;
    }
    let directory = server.directory.join("pooler");
    let settings = directory.join("pgbouncer.ini");
    std::fs::create_dir_all(&directory).unwrap();
    let text = format!(
        "[databases]\n* = host={} user=memhost\n[pgbouncer]\nlisten_addr =\n\
         listen_port = 5432\nunix_socket_dir = {}\nauth_type = any\npool_mode = transaction\n\
         default_pool_size = {POOLED}\nmax_client_conn = 800\nserver_idle_timeout = 5\n\
         server_login_retry = 1\n",
        server.directory.display(),
        directory.display(),
    );
    std::fs::write(&settings, text).unwrap();
    if is_root() {
        let owned = Command::new("chown").arg("-R").arg("postgres").arg(&directory).status();
        assert!(owned.unwrap().success());
    }
    let shell =
        format!("{POOLER} -q '{}' & child=$!; cat; kill $child; wait $child", settings.display());
    let process = as_user(Path::new("/bin/sh"))
        .args(["-c", &shell])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(directory.join("log")).unwrap())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    // The socket is there a moment before somebody listens.
    while UnixStream::connect(directory.join(".s.PGSQL.5432")).is_err() {
        let log = std::fs::read_to_string(directory.join("log")).unwrap();
        assert!(Instant::now() < until, "PgBouncer does not start: {log}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(Server { directory, process })
}

fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(start).as_ref()
}

fn pooler() -> Option<&'static Server> {
    static POOLER: OnceLock<Option<Server>> = OnceLock::new();
    POOLER.get_or_init(start_pooler).as_ref()
}

/// A directory as addresses name it.
fn shown(directory: &Path) -> String {
    directory.display().to_string().replace('/', "%2F")
}

/// The address of a database by way of PgBouncer in transaction mode, without a word about
/// prepared statements. None where no PgBouncer is installed, unless `MEMHOST_TESTS_NEED_TOOLS` is
/// set.
///
/// # Panics
/// Where a tool is needed and missing, or it does not start.
pub fn by_pooler(address: &str) -> Option<String> {
    let (server, pooler) = (server()?, pooler()?);
    let front = format!("@{}/", shown(&server.directory));
    let address = direct(address);
    assert!(address.contains(&front), "{address} is not of these tests");
    Some(address.replace(&front, &format!("@{}/", shown(&pooler.directory))))
}

/// The parameter that an address by way of PgBouncer needs.
pub const UNPREPARED: &str = "prepared=false";

/// The address of a database past PgBouncer.
pub fn direct(address: &str) -> String {
    let address = address.trim_end_matches(&format!("?{UNPREPARED}"));
    let server = server().map(|server| shown(&server.directory)).unwrap_or_default();
    address.replace(&format!("@{server}%2Fpooler/"), &format!("@{server}/"))
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

/// A connection that belongs to no store, and past PgBouncer.
///
/// # Panics
/// Where the server does not answer within 30 seconds.
pub async fn client(address: &str) -> Client {
    let address = &direct(address);
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

/// The address of a new, empty database, by way of PgBouncer where `MEMHOST_TESTS_POOLER` is set.
/// None where no PostgreSQL is installed, unless `MEMHOST_TESTS_NEED_TOOLS` is set.
///
/// # Panics
/// Where a tool is needed and missing, or the server does not start.
pub async fn database() -> Option<String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let socket = shown(&server()?.directory);
    let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let admin = client(&format!("postgres://memhost@{socket}/postgres")).await;
    admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let address = format!("postgres://memhost@{socket}/{name}");
    match std::env::var_os("MEMHOST_TESTS_POOLER") {
        Some(_) => by_pooler(&address).map(|address| format!("{address}?{UNPREPARED}")),
        None => Some(address),
    }
}
