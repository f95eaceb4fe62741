//! HAProxy with the file that we give for it, before three hosts: it learns which host serves a
//! company.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Signal;

use crate::cluster::{Cluster, Host, TOKEN, listening, send};
use crate::cluster_homes::{capture, capture_path, company, query_path, spread, wait_for};

const COMPANIES: usize = 20;

/// An address that nobody has at the moment.
fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// HAProxy, and the server of each request that it has passed on, as it logs them.
struct Balancer {
    child: Child,
    url: String,
    servers: Receiver<String>,
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Balancer {
    fn start(cluster: &Cluster, hosts: &[(String, Host)]) -> Self {
        let ours = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../host/deploy/haproxy");
        let file = std::fs::read_to_string(ours.join("haproxy.cfg")).unwrap();
        let (address, map) = (free(), cluster.path("homes.map"));
        std::fs::write(&map, "").unwrap();
        let mut lines: Vec<String> = file
            .replace("/etc/haproxy/homes.map", map.to_str().unwrap())
            .lines()
            .filter(|line| !line.starts_with("    server "))
            .map(|line| match line.starts_with("    bind ") {
                true => format!("    bind {address}"),
                false => line.to_owned(),
            })
            .collect();
        for (name, host) in hosts {
            lines.push(format!("    server {name} {}", &host.url["http://".len()..]));
        }
        let path = cluster.path("haproxy.cfg");
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let mut haproxy = Command::new("haproxy");
        let mut child = haproxy
            .args(["-db", "-f"])
            .arg(&path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stdout.take().unwrap());
        let (tell, servers) = channel();
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok).filter(|line| line.contains("/runtime/"))
            {
                let server = line.split_once(" host=").and_then(|(_, rest)| rest.split(' ').next());
                let _ = tell.send(server.unwrap_or(&line).to_owned());
            }
        });
        let balancer = Self { child, url: format!("http://{address}"), servers };
        wait_for("HAProxy answers", || {
            matches!(send(&balancer.url, "/healthz", None, None), Some((200, _)))
        });
        balancer
    }

    /// Captures in each company. Answers which server got each request.
    fn round(&self, number: usize) -> Vec<String> {
        let each = (0..COMPANIES).map(company).map(|company| {
            let body = capture(&company, &format!("round {number}"));
            let answer = send(&self.url, &capture_path(&company), Some(&body), None);
            assert!(matches!(answer, Some((200, _))), "{company}: {answer:?}");
            self.servers.recv_timeout(Duration::from_secs(10)).expect("HAProxy logs no request")
        });
        each.collect()
    }
}

/// Which host serves a company, as a host says.
fn home(asked: &Host, company: &str) -> Option<String> {
    let path = format!("{}{}", asked.url, query_path(company));
    let agent = ureq::Agent::from(
        ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(30))).build(),
    );
    let body = serde_json::json!({"scope": {"companyId": company}, "query": "round"});
    let call = agent.post(path).header("authorization", format!("Bearer {TOKEN}"));
    let home =
        call.send_json(body).unwrap().headers().get("memhost-home")?.to_str().ok()?.to_owned();
    Some(home)
}

#[test]
fn haproxy_learns_which_host_serves_a_company_and_forgets_a_host_that_ends() {
    let found = memhost_tests::needed(
        Command::new("haproxy")
            .arg("-v")
            .output()
            .map_err(|_| "no HAProxy; `apt-get install haproxy` installs it"),
    );
    let (Some(_), Some(cluster)) = (found, Cluster::new()) else { return };
    let mut hosts: Vec<(String, Host)> = ["a", "b", "c"]
        .into_iter()
        .map(|name| {
            let peer = free();
            let flags = peer.clone();
            let command =
                cluster.command_with(name, |all| drop(all.insert("--peer-listen", flags)));
            (peer, listening(command))
        })
        .collect();
    spread(&hosts[0].1, hosts.len());
    let balancer = Balancer::start(&cluster, &hosts);
    balancer.round(1);
    let servers = balancer.round(2);
    for (number, server) in servers.iter().enumerate() {
        for (name, host) in &hosts {
            assert_eq!(home(host, &company(number)).as_ref(), Some(server), "as {name} says");
        }
    }
    // The home of the first company is gone.
    let gone = hosts.iter().position(|(name, _)| *name == servers[0]).unwrap();
    let (name, host) = hosts.remove(gone);
    host.signal(Signal::KILL);
    drop(host);
    balancer.round(3);
    balancer.round(4);
    let servers = balancer.round(5);
    assert!(!servers.contains(&name), "{servers:?}");
    for (number, server) in servers.iter().enumerate() {
        assert_eq!(home(&hosts[0].1, &company(number)).as_ref(), Some(server));
    }
}
