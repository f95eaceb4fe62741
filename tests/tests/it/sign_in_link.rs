//! `memhost serve` says where the explorer is, and prints a link that signs in once.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use memhost_server::Method;
use memhost_tests::{TestHost, needed};
use serde_json::json;

use super::support::Api;

/// A host of its own process, which ends with the test.
struct Host(Child);

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a host, on a terminal or with its output in a pipe, and answers what it prints, up to a
/// line that holds this text.
fn start(home: &Path, is_on_terminal: bool, until: &str) -> (Host, String) {
    let line = format!(
        "'{}' serve --listen 127.0.0.1:0 --data-dir data",
        env!("CARGO_BIN_EXE_memhost-cli")
    );
    let mut command = Command::new(if is_on_terminal { "script" } else { "sh" });
    match is_on_terminal {
        true => command.args(["--quiet", "--return", "--command", &line, "/dev/null"]),
        false => command.args(["-c", &format!("exec {line}")]),
    };
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("MEMHOST_")) {
        command.env_remove(name);
    }
    command.env("MEMHOST_CACHE_DIR", memhost_tests::cache_dir());
    command.env("HOME", home).current_dir(home).stdin(Stdio::null());
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
    let cookies =
        response.headers().get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
    let session = cookies.filter(|cookie| cookie.starts_with("memhost_session=")).collect();
    (response.status().as_u16(), session)
}

#[test]
fn a_link_signs_in_once() {
    let Some(_) = needed(Command::new("script").arg("--version").output()) else { return };
    let home = tempfile::tempdir().unwrap();
    let (host, said) = start(home.path(), true, "/sign-in?link=");
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
    // Where the output is kept, such as a service's, no start prints a link.
    let (host, said) = start(home.path(), false, "the explorer is at");
    assert!(!said.contains("link="), "{said}");
    drop(host);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_with_the_operators_token_signs_a_person_in() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let token = async |role: &str| {
        let made = api
            .post("/control/v1/companies/acme/tokens", &json!({"name": "p", "role": role}))
            .await
            .fine();
        made["value"].as_str().unwrap().to_owned()
    };
    let (person, gateway) = (token("company_administrator").await, token("integration").await);
    let make = "/sign-in/link";
    for wrong in ["unknown", &gateway] {
        let refused = api.post(make, &json!({"token": wrong})).await;
        assert_eq!(
            (refused.status, &refused.json["field"]),
            (400, &json!("token")),
            "{}",
            refused.text
        );
        assert!(
            refused.json["detail"].as_str().unwrap().starts_with("token: is unknown"),
            "{}",
            refused.text
        );
    }
    assert_eq!(
        api.with(&person).post(make, &json!({"token": person})).await.problem(),
        (403, "forbidden")
    );
    let refused = api
        .with(&person)
        .send(
            Method::Post,
            make,
            Some(json!({"token": person}).to_string()),
            &[("accept", "text/html")],
        )
        .await;
    assert_eq!(
        refused.problem(),
        (403, "forbidden"),
        "a program's route answers programs: {}",
        refused.text
    );
    assert_eq!(api.with("nobody").post(make, &json!({"token": person})).await.status, 401);
    for (next, leads_to) in
        [("/c/acme/operations", "/c/acme/operations"), ("//elsewhere.example/", "/")]
    {
        let link = api.post(make, &json!({"token": person})).await.fine()["path"]
            .as_str()
            .unwrap()
            .to_owned();
        let link = format!("{link}&next={next}");
        let open = async || api.send(Method::Get, &link, None, &[]).await;
        let opened = open().await;
        assert_eq!((opened.status, opened.headers["location"].to_str().unwrap()), (303, leads_to));
        let cookie =
            opened.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let page = api.send(Method::Get, "/c/acme/operations", None, &[("cookie", &cookie)]).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let other =
            api.send(Method::Get, "/c/other/operations", None, &[("cookie", &cookie)]).await;
        assert_eq!(other.status, 403, "the person has this company only");
        assert_eq!(open().await.status, 401, "once");
    }
}
