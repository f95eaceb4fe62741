//! Plugins of several hosts on one PostgreSQL: a file that is dropped at one of them serves at all,
//! and goes on serving when that host is gone.

use std::fs;
use std::path::PathBuf;

use memhost_tests::guest_file;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Host, TOKEN, program, send};
use crate::cluster_homes::wait_for;

const PLUGINS: &str = "/control/v1/plugins";

/// The file of a provider that keeps nothing, in the plugins directory of a host.
fn plugin_of(cluster: &Cluster, host: &str) -> PathBuf {
    cluster.path(host).join("plugins").join("remembers.wasm")
}

/// Whether new bindings can have the provider: a copy serves only those that it served.
fn has_provider(at: &Host) -> bool {
    let (_, answer) = send(&at.url, PLUGINS, None, None).unwrap_or_default();
    let all = answer["admitted"].as_array().cloned().unwrap_or_default();
    let is_it =
        |one: &Value| one.to_string().contains("remembers") && one["source"]["kind"] != "kept";
    all.iter().any(is_it)
}

fn asks_the_provider(at: &Host) -> (u16, Value) {
    let asked = json!({"scope": {"companyId": "acme"}, "query": "what", "bindingKey": "odd"});
    send(&at.url, "/runtime/v1/companies/acme/query", Some(&asked), None).unwrap()
}

fn kill(mut host: Host) {
    host.child.kill().unwrap();
    host.child.wait().unwrap();
}

#[test]
fn a_plugin_that_one_host_brought_serves_at_all_of_them() {
    let Some(cluster) = Cluster::new() else { return };
    // The first one leads, and the second one gets the file.
    let (first, second) = (cluster.start("a"), cluster.start("b"));
    wait_for("a host leads", || send(&first.url, "/readyz", None, None).unwrap().0 == 200);
    fs::copy(guest_file("remembers"), plugin_of(&cluster, "b")).unwrap();
    wait_for("the plugin of the second host is at the first", || has_provider(&first));
    let binding = json!({"key": "odd", "providerKey": "remembers"});
    let made = send(&first.url, "/control/v1/companies/acme/bindings", Some(&binding), None);
    assert!(made.as_ref().is_some_and(|(status, _)| (200..300).contains(status)), "{made:?}");
    let answer = asks_the_provider(&first);
    assert_eq!(answer.0, 200, "{}", answer.1);
    // A third one without the file takes over from both.
    let third = cluster.start("c");
    wait_for("the third host has it", || {
        fs::read_dir(cluster.path("c").join("plugins-of-others")).unwrap().count() > 0
    });
    kill(first);
    kill(second);
    let answer = asks_the_provider(&third);
    assert_eq!(answer.0, 200, "{}", answer.1);
    assert!(has_provider(&third));

    // It is removed where it was brought, so nobody has it for new bindings. The binding goes on,
    // also at a host that has never seen the file.
    fs::remove_file(plugin_of(&cluster, "b")).unwrap();
    let second = cluster.start("b");
    wait_for("the plugin is gone", || !has_provider(&third));
    assert_eq!(asks_the_provider(&third).0, 200);
    let fourth = cluster.start("d");
    let copies = || {
        let all = fs::read_dir(cluster.path("d").join("components")).unwrap();
        all.filter(|file| {
            let name = file.as_ref().unwrap().file_name();
            name.to_string_lossy().ends_with(".wasm")
        })
        .count()
    };
    // The built-in provider has no file, but a copy.
    wait_for("the fourth host has the copy", || copies() >= 1);
    kill(second);
    kill(third);
    let answer = asks_the_provider(&fourth);
    assert_eq!(answer.0, 200, "{}", answer.1);
}

/// A component that some host took is nothing to a host that wants signatures.
#[test]
fn each_host_checks_for_itself_whether_it_trusts_a_plugin() {
    let Some(cluster) = Cluster::new() else { return };
    let first = cluster.start("a");
    wait_for("a host leads", || send(&first.url, "/readyz", None, None).unwrap().0 == 200);
    fs::copy(guest_file("remembers"), plugin_of(&cluster, "a")).unwrap();
    wait_for("the plugin is admitted", || has_provider(&first));
    let mut strict = cluster.command("b");
    strict.arg("--require-signatures");
    let second = crate::cluster::listening(strict);
    wait_for("the second host has the file", || {
        fs::read_dir(cluster.path("b").join("plugins-of-others")).unwrap().count() > 0
    });
    // A pipe in the place of a signature holds up nobody.
    let pipe = plugin_of(&cluster, "a").with_file_name("remembers.wasm.minisig");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    fs::copy(guest_file("notes"), plugin_of(&cluster, "a").with_file_name("notes.wasm")).unwrap();
    wait_for("the second host has both files", || {
        fs::read_dir(cluster.path("b").join("plugins-of-others")).unwrap().count() > 1
    });
    fs::remove_file(&pipe).unwrap();
    // A signature that comes later reaches it, too.
    fs::write(&pipe, "no signature").unwrap();
    wait_for("the second host has the signature", || {
        let files = fs::read_dir(cluster.path("b").join("plugins-of-others")).unwrap();
        let is_signature = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(".minisig");
        files.into_iter().any(|file| is_signature(&file.unwrap().file_name()))
    });
    // It is no copy that a binding could be served from, either. Looked at before this host leads,
    // which removes copies that nobody needs.
    let components = fs::read_dir(cluster.path("b").join("components")).unwrap();
    let remembers = fs::metadata(guest_file("remembers")).unwrap().len();
    for file in components {
        assert_ne!(file.unwrap().metadata().unwrap().len(), remembers);
    }
    kill(first);
    let list = || {
        let mut listing = program();
        listing.args(["plugin", "list", "--url", &second.url, "--token", TOKEN, "-o", "json"]);
        String::from_utf8_lossy(&listing.output().unwrap().stdout).into_owned()
    };
    // It was looked at again when its signature came.
    wait_for("the second host refuses both", || {
        let list = list();
        list.contains("remembers.") && list.contains("it is not signed")
    });
    assert!(!has_provider(&second));
}
