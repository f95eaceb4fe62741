//! A host in a process of its own, and an attack on it for some rounds.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Attack, outside};

pub(super) const OPERATOR: &str = "mh_operator_of_the_attacked_host";
/// What attackers would have at the beginning of a line of the log.
pub(super) const FORGED: &str = "FORGED";
/// How long a call may take in the short form. It is there so that a host that hangs fails the
/// test.
const PATIENCE: Duration = Duration::from_secs(60);

/// One round of an attacker, with the number of the round.
pub(super) type Round = fn(&Host, u64) -> Result<(), String>;

/// A host that listens, and its companies `evil` and `neighbour`.
pub(super) struct Host {
    child: Child,
    address: String,
    directory: TempDir,
    quiet: u64,
    /// An agent's token of `evil`.
    pub(super) agent: String,
    /// A revoked token of `evil`.
    pub(super) revoked: String,
    /// Connections that the attackers hold open.
    pub(super) held: Mutex<Vec<TcpStream>>,
}

/// A status and a body.
pub(super) type Answer = (u16, String);

impl Host {
    /// A host whose log has what the filter lets through.
    pub(super) fn start(log: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let plugins = directory.path().join("data/plugins");
        std::fs::create_dir_all(&plugins).unwrap();
        for guest in ["embeds", "spins-cpu"] {
            let file = plugins.join(format!("{guest}.wasm"));
            std::fs::copy(memhost_tests::guest_file(guest), file).unwrap();
        }
        let endpoint = outside::serve();
        let config = format!(
            "[embeddings.endpoint]\nurl = \"{endpoint}\"\nmodel = \"small\"\ndimensions = 2\n"
        );
        std::fs::write(directory.path().join("config.toml"), config).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_memhost-cli"))
            .args(["serve", "--listen", "127.0.0.1:0", "--token", OPERATOR, "--data-dir"])
            .arg(directory.path().join("data"))
            .arg("--config")
            .arg(directory.path().join("config.toml"))
            .env("MEMHOST_LOG", log)
            .env("MEMHOST_CACHE_DIR", memhost_tests::cache_dir())
            .env("HOME", directory.path())
            .env("XDG_CONFIG_HOME", directory.path().join("config"))
            .env_remove("MEMHOST_COMPANY")
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(directory.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line = line.unwrap();
            let rest = line.split_once("127.0.0.1:")?.1;
            let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
            (!port.is_empty() && port != "0").then(|| format!("127.0.0.1:{port}"))
        });
        // Somebody must read what the program goes on to say.
        std::thread::spawn(move || lines.for_each(drop));
        let mut host = Self {
            child,
            address: address.expect("the host says where it listens"),
            directory,
            quiet: 0,
            agent: String::new(),
            revoked: String::new(),
            held: Mutex::default(),
        };
        for company in ["evil", "neighbour"] {
            let records = json!({
                "scope": {"companyId": company},
                "records": [{"text": format!("a fact of {company}")}],
            });
            host.fine(&format!("/runtime/v1/companies/{company}/records"), &records);
        }
        host.bind(
            &json!({"key": "vectors", "providerKey": "embeds", "grants": {"embeddings": true}}),
        );
        host.bind(&json!({"key": "spins", "providerKey": "spins-cpu"}));
        host.bind(&json!({
            "key": "guarded", "providerKey": "local-markdown",
            "policy": {"review": {"piiRisk": 1}},
        }));
        let tokens = "/control/v1/companies/evil/tokens";
        let made = host.fine(tokens, &json!({"name": "a", "role": "agent", "agentId": "ada"}));
        host.agent = made["value"].as_str().unwrap().to_owned();
        let made = host.fine(tokens, &json!({"name": "r", "role": "auditor"}));
        host.revoked = made["value"].as_str().unwrap().to_owned();
        let id = made["id"].as_str().unwrap();
        let (status, text) =
            host.send("DELETE", &format!("{tokens}/{id}"), OPERATOR, &[], b"").unwrap();
        assert!(status < 300, "{status} {text}");
        host.quiet = host.resident();
        host
    }

    fn fine(&self, path: &str, body: &Value) -> Value {
        let (status, text) = self.as_operator(path, body).unwrap();
        assert!(status < 300, "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Makes a binding of `evil`, once its provider is there.
    fn bind(&self, binding: &Value) {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.as_operator("/control/v1/companies/evil/bindings", binding).unwrap() {
                (200..300, _) => return,
                (status, text) => assert!(Instant::now() < until, "{binding}: {status} {text}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The directory that the host and its commands use.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Whether every line of the log is one that the host wrote, and none of it does anything to a
    /// terminal.
    pub(super) fn logs_well(&self) -> Result<(), String> {
        let log = std::fs::read(self.directory.path().join("log")).unwrap();
        let log = String::from_utf8_lossy(&log);
        let is_bad = |line: &&str| {
            line.starts_with(FORGED) || line.contains(|c: char| c.is_control() && c != '\t')
        };
        log.lines().find(is_bad).map_or(Ok(()), |line| Err(format!("the log has {line:?}")))
    }

    pub(super) fn as_operator(&self, path: &str, body: &Value) -> Result<Answer, String> {
        self.send(
            "POST",
            path,
            OPERATOR,
            &[("content-type", "application/json")],
            body.to_string().as_bytes(),
        )
    }

    pub(super) fn import(&self, company: &str, body: &[u8]) -> Result<Answer, String> {
        let path = format!("/control/v1/companies/{company}/import");
        self.send("POST", &path, OPERATOR, &[("content-type", "application/x-ndjson")], body)
    }

    /// As the agent of `evil`.
    pub(super) fn post(&self, path: &str, body: &str) -> Result<Answer, String> {
        self.send(
            "POST",
            path,
            &self.agent,
            &[("content-type", "application/json")],
            body.as_bytes(),
        )
    }

    pub(super) fn get(&self, path: &str) -> Result<Answer, String> {
        self.send("GET", path, OPERATOR, &[], b"")
    }

    /// A request on a connection of its own, byte for byte.
    pub(super) fn send(
        &self,
        method: &str,
        path: &str,
        token: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, String> {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n",
            self.address
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("connection: close\r\ncontent-length: {}\r\n\r\n", body.len()));
        self.raw(&[head.as_bytes(), body].concat())
    }

    pub(super) fn connect(&self) -> Result<TcpStream, String> {
        let stream =
            TcpStream::connect(&self.address).map_err(|error| format!("no connection: {error}"))?;
        stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
            .unwrap();
        Ok(stream)
    }

    /// Sends bytes and reads the answer until the end. A connection that the host closes without an
    /// answer has status 0.
    pub(super) fn raw(&self, bytes: &[u8]) -> Result<Answer, String> {
        let mut stream = self.connect()?;
        // The host may answer and close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                return Err(format!("no end of the answer within {} s", PATIENCE.as_secs()));
            }
            _ => {}
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        // A body in chunks: the first one is enough for what is asked here.
        let body = body.find(['{', '[']).map_or(body, |start| &body[start..]);
        Ok((status, body.to_owned()))
    }

    /// A command of the program against this host, as the operator.
    pub(super) fn command(&self, arguments: &[&str]) -> Output {
        let home = self.directory.path().join("home");
        std::fs::create_dir_all(&home).unwrap();
        Command::new(env!("CARGO_BIN_EXE_memhost-cli"))
            .args(arguments)
            .env("MEMHOST_URL", format!("http://{}", self.address))
            .env("MEMHOST_TOKEN", OPERATOR)
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", &home)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The memory of the process, in bytes.
    pub(super) fn resident(&self) -> u64 {
        resident(self.child.id())
    }

    pub(super) fn quiet_bytes(&self) -> u64 {
        self.quiet
    }

    /// Whether the host is there, and the neighbour finds its own record and nothing else.
    pub(super) fn is_well(&self) -> Result<(), String> {
        let (status, text) = self.get("/healthz")?;
        if status != 200 {
            return Err(format!("/healthz answers {status} {text}"));
        }
        self.query_neighbour().and_then(|()| self.list_neighbour())
    }

    pub(super) fn query_neighbour(&self) -> Result<(), String> {
        self.ask_neighbour_by(
            "query",
            &json!({"scope": {"companyId": "neighbour"}, "query": "fact"}),
        )
    }

    pub(super) fn list_neighbour(&self) -> Result<(), String> {
        self.ask_neighbour_by("list", &json!({"scope": {"companyId": "neighbour"}, "limit": 20}))
    }

    fn ask_neighbour_by(&self, operation: &str, ask: &Value) -> Result<(), String> {
        let (status, text) =
            self.as_operator(&format!("/runtime/v1/companies/neighbour/{operation}"), ask)?;
        match status == 200 && text.contains("a fact of neighbour") && !text.contains("evil") {
            true => Ok(()),
            false => Err(format!("the neighbour is answered {status} {text}")),
        }
    }

    /// Runs an attack for some rounds. Answers what the host did wrong, each thing once, and the
    /// most memory that it had.
    pub(super) fn besieged(&self, attack: &Attack, rounds: u64) -> (Vec<String>, u64) {
        let (errors, running) = (Mutex::new(Vec::new()), AtomicU64::new(attack.threads as u64));
        let (errors, running) = (&errors, &running);
        let most = std::thread::scope(|scope| {
            for thread in 0..attack.threads as u64 {
                scope.spawn(move || {
                    for round in 0..rounds {
                        if let Err(error) = (attack.run)(self, thread * rounds + round) {
                            errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
                        }
                    }
                    running.fetch_sub(1, Ordering::Relaxed);
                });
            }
            let mut most = 0;
            while running.load(Ordering::Relaxed) > 0 {
                most = most.max(self.resident());
                std::thread::sleep(Duration::from_millis(10));
            }
            most
        });
        // While what the attackers hold is still held.
        if let Err(error) = self.is_well() {
            errors
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(format!("during it: {error}"));
        }
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let mut errors = errors.lock().unwrap_or_else(PoisonError::into_inner).split_off(0);
        errors.extend(self.logs_well().err());
        errors.sort();
        errors.dedup();
        errors.truncate(5);
        (errors, most)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn resident(process: u32) -> u64 {
    let status =
        std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("status"))
            .unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}
