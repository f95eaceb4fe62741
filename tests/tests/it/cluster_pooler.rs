//! Hosts on a PostgreSQL behind PgBouncer in transaction mode, which has fewer sessions than one
//! host has connections.

use memhost_postgres::testing::{self, UNPREPARED};
use serde_json::json;

use crate::cluster::{CAPTURE, Cluster, Writer, capture, check_once, ends, found, listed, states};

const FORGET: &str = "/runtime/v1/companies/acme/forget";

#[test]
fn hosts_serve_and_replace_each_other_behind_a_pooler_in_transaction_mode() {
    let Some(mut cluster) = Cluster::new() else { return };
    let Some(pooled) = testing::by_pooler(&cluster.database) else { return };
    cluster.database = pooled.clone();
    let (code, said) = ends(cluster.command("a"));
    assert!(code == 2 && said.contains("prepared=false"), "{code} {said}");

    cluster.database = format!("{pooled}?{UNPREPARED}");
    let (mut first, second) = (cluster.start("a"), cluster.start("b"));
    first.fine(CAPTURE, Some(&capture("The letters are kept in the north archive")));
    second.fine(CAPTURE, Some(&capture("The maps are kept in the south archive")));
    for host in [&first, &second] {
        assert_eq!(found(host, "archive"), 2);
        assert_eq!(listed(host, "acme").len(), 2);
    }
    let list = json!({"scope": {"companyId": "acme"}});
    let all = second.fine("/runtime/v1/companies/acme/list", Some(&list));
    let items = all["items"].as_array().unwrap();
    let maps = items.iter().find(|one| one["text"].as_str().unwrap().contains("maps")).unwrap();
    let forget = json!({"scope": {"companyId": "acme"}, "handles": [maps["handle"]]});
    first.fine(FORGET, Some(&forget));
    for host in [&first, &second] {
        assert_eq!((found(host, "maps"), found(host, "archive")), (0, 1));
    }

    // The first one that was started leads. The other takes its place.
    let writer = Writer::start(&second.url, "keyed", true);
    writer.more(10);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    writer.more(10);
    let again = cluster.start("a");
    writer.more(10);
    let written = writer.stop();
    assert!(written.others.len() <= 1, "{:?}", written.others);
    for host in [&again, &second] {
        check_once(host, &written.acknowledged);
        assert_eq!((found(host, "maps"), found(host, "archive")), (0, 1));
    }
    let up = states(&again);
    assert_eq!((up.get("leads"), up.get("follows")), (Some(&1), Some(&1)), "{up:?}");
}
