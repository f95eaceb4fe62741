//! `memhost serve` says where the explorer is, and prints a link that signs in once.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A host of its own process, which ends with the test.
struct Host(Child);

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a host and answers what it prints, up to a line that holds this text.
fn start(data_dir: &std::path::Path, until: &str) -> (Host, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memhost-cli"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("MEMHOST_")) {
        command.env_remove(name);
    }
    command.env("MEMHOST_CACHE_DIR", memhost_tests::cache_dir());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data_dir);
    let mut host = Host(command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap());
    let mut said = String::new();
    for line in BufReader::new(host.0.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        said.push_str(&line);
        said.push('\n');
        if line.contains(until) {
            return (host, said);
        }
    }
    panic!("the host ended without `{until}`: {said}");
}

/// The status of a page, and the cookies that it sets.
fn get(url: &str, cookie: &str) -> (u16, String) {
    let config = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build();
    let response = ureq::Agent::from(config).get(url).header("cookie", cookie).call().unwrap();
    let cookies = response.headers().get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
    let session = cookies.filter(|cookie| cookie.starts_with("memhost_session=")).collect();
    (response.status().as_u16(), session)
}

#[test]
fn a_link_signs_in_once() {
    let home = tempfile::tempdir().unwrap();
    let data_dir = home.path().join("data");
    let (host, said) = start(&data_dir, "/sign-in?link=");
    let link = said.lines().last().unwrap().trim();
    let (address, _) = link.split_once("/sign-in").unwrap();
    assert!(said.contains(&format!("the explorer is at {address}/")), "{said}");
    assert_eq!(get(&format!("{address}/sign-in?link=guessed"), ""), (401, String::new()));
    let (status, cookie) = get(link, "");
    assert_eq!(status, 303);
    let cookie = cookie.split(';').next().unwrap().to_owned();
    assert_eq!(get(&format!("{address}/"), &cookie).0, 200);
    assert_eq!(get(link, "").0, 401, "once");
    assert_eq!(get(&format!("{address}/"), &cookie).0, 200, "the session goes on");
    drop(host);
    // Where the output is kept, such as a service's, no later start prints a link.
    let (host, said) = start(&data_dir, "the explorer is at");
    assert!(!said.contains("link="), "{said}");
    drop(host);
}
