//! What an operator sees of several hosts on one PostgreSQL.

use std::process::Command;

use crate::cluster::{CAPTURE, Cluster, Host, TOKEN, capture, program, send};

fn said(mut command: Command, at: &Host) -> String {
    command.args(["--url", &at.url, "--token", TOKEN]);
    let output = command.output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn doctor(at: &Host) -> String {
    let mut command = program();
    command.arg("doctor");
    said(command, at)
}

#[test]
fn figures_and_checks_are_about_the_hosts_and_their_database() {
    let Some(cluster) = Cluster::new() else { return };
    let mut first = cluster.start("a");
    // It serves all companies.
    let written = send(&first.url, CAPTURE, Some(&capture("The letters are here")), None).unwrap();
    assert_eq!(written.0, 200, "{}", written.1);
    let second = cluster.start("b");
    let metrics = |at: &Host| {
        let answer = send(&at.url, "/metrics", None, None).unwrap().1;
        answer.as_str().unwrap().to_owned()
    };
    // The second one has no share yet, so no figures of its own.
    assert_eq!(send(&second.url, "/metrics", None, None).unwrap().0, 503);
    let text = metrics(&first);
    for line in ["memhost_hosts{state=\"up\"} 2", "memhost_hosts{state=\"gone\"} 0"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let figure = |text: &str, name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        line.unwrap_or_else(|| panic!("{name}: {text}"))
    };
    assert!(figure(&text, "memhost_database_items_total") > 0);
    assert_eq!(figure(&text, "memhost_database_items_given_up_total"), 0);
    assert_eq!(figure(&text, "memhost_groups "), 16);
    assert_eq!(figure(&text, "memhost_groups_taken_total"), 17, "with what belongs to no company");
    let found = doctor(&first);
    assert!(found.contains("2 hosts on the database"), "{found}");
    assert!(found.contains("synchronous_commit is on"), "{found}");

    // It is killed: the other one takes everything over, and the list says who is gone.
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let written = send(&second.url, CAPTURE, Some(&capture("The maps are here")), None).unwrap();
    assert_eq!(written.0, 200, "{}", written.1);
    let text = metrics(&second);
    assert!(figure(&text, "memhost_database_items_total") > 0);
    assert!(text.contains("memhost_hosts{state=\"gone\"} 1"), "{text}");
    assert!(doctor(&second).contains("gone in the last ten minutes"));
}
