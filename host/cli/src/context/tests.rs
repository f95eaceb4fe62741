//! Which of flag, environment, context and default has the say, and how the file is kept.

use std::os::unix::fs::PermissionsExt;

use clap::Parser;

use super::*;
use crate::args::HostArgs;
use crate::connection::Connection;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    host: HostArgs,
}

fn args(given: &[&str]) -> HostArgs {
    let mut host = Line::parse_from([&["memhost"], given].concat()).host;
    // What the environment of this test says is not the matter here: clap puts it below flags by
    // itself.
    if !given.contains(&"--url") {
        host.url = None;
    }
    if !given.contains(&"--control-url") {
        host.control_url = None;
    }
    if !given.contains(&"--ca") {
        host.ca = None;
    }
    if !given.contains(&"--token") {
        host.token = None;
    }
    if !given.contains(&"--context") {
        host.context = None;
    }
    host
}

fn file(text: &str) -> (tempfile::TempDir, File) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let file = File::at(&path).unwrap();
    (directory, file)
}

const TWO: &str = "default = \"a\"\n[contexts.a]\nurl = \"http://a:1/\"\ntoken = \"of a\"\ncompany \
                   = \"acme\"\n\
                   [contexts.b]\nurl = \"http://b:1\"\ntoken_command = \"echo of b\"\nagent \
                   = \"ada\"\n";

#[test]
fn a_flag_overrides_the_context_and_the_context_overrides_the_default() {
    let (_directory, two) = file(TWO);
    let target = |given: &[&str]| Connection::among(&args(given), &two).unwrap();
    let found = target(&[]);
    assert_eq!((found.url.as_str(), found.token.as_deref()), ("http://a:1", Some("of a")));
    assert_eq!((found.company.as_deref(), found.agent), (Some("acme"), None));
    let found = target(&["--context", "b"]);
    assert_eq!((found.url.as_str(), found.token.as_deref()), ("http://b:1", Some("of b")));
    assert_eq!((found.company, found.agent.as_deref()), (None, Some("ada")));
    let found = target(&["--token", "mine"]);
    assert_eq!((found.url.as_str(), found.token.as_deref()), ("http://a:1", Some("mine")));
    let found = target(&["--url", "", "--token", ""]);
    assert_eq!(
        (found.url.as_str(), found.token.as_deref()),
        ("http://a:1", Some("of a")),
        "empty is as good as none"
    );
    let none = Connection::among(&args(&[]), &File::default()).unwrap();
    assert_eq!((none.url.as_str(), none.token, none.company), (DEFAULT_URL, None, None));
}

#[test]
fn a_contexts_token_goes_to_the_contexts_host_only() {
    let (_directory, two) = file(TWO);
    let elsewhere = Connection::among(&args(&["--url", "http://elsewhere"]), &two).unwrap();
    assert_eq!((elsewhere.url.as_str(), elsewhere.token), ("http://elsewhere", None));
    let split = Connection::among(&args(&["--control-url", "http://elsewhere"]), &two).unwrap();
    assert_eq!(
        (split.url.as_str(), split.control_url.as_str(), split.token),
        ("http://a:1", "http://elsewhere", None)
    );
    let same = Connection::among(&args(&["--url", "http://a:1"]), &two).unwrap();
    assert_eq!(same.token.as_deref(), Some("of a"));
}

#[test]
fn a_context_that_is_none_is_refused_with_the_nearest_one() {
    let (_directory, file) = file("[contexts.staging]\n[contexts.production]\n");
    let error = Connection::among(&args(&["--context", "stagin"]), &file).unwrap_err();
    assert_eq!(error.exit_code(), 3);
    assert!(error.to_string().contains("`staging`"), "{error}");
}

#[test]
fn a_file_with_a_token_that_others_can_read_is_refused() {
    let (directory, _) = file(TWO);
    let path = directory.path().join("config.toml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = File::at(&path).unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    let misspelt = directory.path().join("misspelt.toml");
    std::fs::write(&misspelt, "[contexts.a]\nurll = 1\n").unwrap();
    assert!(File::at(&misspelt).unwrap_err().to_string().contains("urll"));
}

#[test]
fn what_a_person_wrote_stays_and_the_file_is_its_owners_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/config.toml");
    let at = || File::at(&path).unwrap();
    set(&at(), "a", &[("url", Some("http://a")), ("token", Some("secret"))]).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert_eq!(at().default.as_deref(), Some("a"), "the first one is used");
    let commented = format!("# mine\n{}", std::fs::read_to_string(&path).unwrap());
    std::fs::write(&path, commented).unwrap();
    set(&at(), "b", &[("company", Some("acme"))]).unwrap();
    set(&at(), "a", &[("url", Some(""))]).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# mine\n") && at().default.as_deref() == Some("a"), "{text}");
    assert_eq!(
        (at().contexts["a"].url.clone(), at().contexts["a"].token.as_deref()),
        (None, Some("secret"))
    );
    assert!(
        !format!("{:?}", view(&at(), "a", &at().contexts["a"])).contains("secret"),
        "a token is never shown"
    );
}

#[test]
fn the_token_of_a_new_host_is_kept_unless_the_name_is_another_hosts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    let at = || File::at(&path).unwrap();
    assert!(keep_local(&at(), "http://127.0.0.1:7600", "http://127.0.0.1:7600", "one").unwrap());
    assert!(keep_local(&at(), "http://127.0.0.1:7600", "http://127.0.0.1:7600", "two").unwrap());
    assert!(!keep_local(&at(), "http://127.0.0.1:7700", "http://127.0.0.1:7700", "three").unwrap());
    let target = Connection::among(&args(&[]), &at()).unwrap();
    assert_eq!(
        (target.url.as_str(), target.token.as_deref()),
        ("http://127.0.0.1:7600", Some("two"))
    );
    assert!(keep_local(&at(), "http://127.0.0.1:7600", "http://127.0.0.1:7601", "two").unwrap());
    assert_eq!(Connection::among(&args(&[]), &at()).unwrap().control_url, "http://127.0.0.1:7601");
    assert!(
        !keep_local(&File::default(), "http://127.0.0.1:7600", "http://127.0.0.1:7600", "four")
            .unwrap()
    );
}
