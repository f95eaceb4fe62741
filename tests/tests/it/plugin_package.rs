//! Providers that a package ships beside the program.

use std::path::{Path, PathBuf};

use memhost_tests::stamped;
use serde_json::json;

use crate::cli::{Terminal, run, words};
use crate::plugin_registry::{files, trusting};
use crate::plugins::Publisher;

/// A directory as a package has it, with two providers.
fn package(prefix: &Path, publisher: &Publisher, version: &str) -> PathBuf {
    let directory = prefix.join("lib/memhost/plugins");
    std::fs::create_dir_all(&directory).unwrap();
    let key = format!("untrusted comment: minisign public key\n{}\n", publisher.public());
    std::fs::write(directory.join("minisign.pub"), key).unwrap();
    for (name, key) in [("stamped", "stamped"), ("other_one", "other-one")] {
        let bytes = stamped(json!({ "key": key, "version": version })).unwrap();
        let file = directory.join(format!("memhost_{name}.wasm"));
        std::fs::write(&file, &bytes).unwrap();
        let signature = publisher.sign(&bytes, "of the package");
        std::fs::write(file.with_extension("wasm.minisig"), signature).unwrap();
    }
    directory
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_of_the_package_is_installed_and_updated_with_it() {
    let publisher = Publisher::new(1);
    let terminal = trusting(&publisher, true).await;
    let prefix = terminal.home.path().join("usr");
    let directory = package(&prefix, &publisher, "1.0.0");
    let from = format!("--package-dir {}", directory.display());
    let install = format!("plugin install other-one {from} --bind other --everything --yes");
    let done = terminal.json(&install).await;
    assert_eq!((&done["provider"], &done["binding"]), (&json!("other-one"), &json!("other")));
    let hits = terminal.json("search anything --binding other").await;
    assert_eq!(hits["snippets"][0]["handle"]["providerRecordId"], "1.0.0");

    let done = terminal.run(&format!("plugin install stampd {from} --yes")).await;
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("did you mean `stamped`") && done.err.contains("other-one"));
    assert!(terminal.fine("plugin outdated").await.contains("as installed"));
    package(&prefix, &publisher, "1.1.0");
    assert!(terminal.fine("plugin outdated").await.contains("plugin update"));
    terminal.fine("plugin update --yes").await;
    let hits = terminal.json("search anything --binding other").await;
    assert_eq!(hits["snippets"][0]["handle"]["providerRecordId"], "1.1.0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_that_somebody_changed_installs_nothing() {
    let publisher = Publisher::new(1);
    let terminal = trusting(&publisher, false).await;
    let directory = package(&terminal.home.path().join("usr"), &publisher, "1.0.0");
    let install = format!("plugin install stamped --yes --package-dir {}", directory.display());
    let file = directory.join("memhost_stamped.wasm");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, [&bytes[..], &[0]].concat()).unwrap();
    let done = terminal.run(&install).await;
    assert_eq!((done.code, done.err.contains("does not fit the file")), (1, true), "{done:?}");
    std::fs::write(&file, &bytes).unwrap();
    std::fs::remove_file(file.with_extension("wasm.minisig")).unwrap();
    let done = terminal.run(&install).await;
    assert_eq!((done.code, done.err.contains("no signature")), (1, true), "{done:?}");
    assert_eq!(files(&terminal), [""; 0]);
    // The host decides, too: another package's key is not one that it trusts.
    package(&terminal.home.path().join("usr"), &Publisher::new(2), "1.0.0");
    let done = terminal.run(&install).await;
    assert_eq!((done.code, done.err.contains("not trusted")), (1, true), "{done:?}");
    assert_eq!(files(&terminal), [""; 0]);
}

/// The directory is found from the program, and the host may be a data directory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_package_is_found_beside_the_program() {
    let publisher = Publisher::new(1);
    let mut terminal = Terminal::open(&[]).await;
    let prefix = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    package(prefix.path(), &publisher, "1.0.0");
    let data = terminal.host.data_dir().display().to_string();
    terminal.end().await;
    let line = format!("plugin install stamped --data-dir {data} --yes");
    let done = run(terminal.home.path(), &[], &words(&line), "").await;
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("--package-dir") && done.err.contains("plugin pull"), "{done:?}");
    std::fs::create_dir(prefix.path().join("bin")).unwrap();
    let program = prefix.path().join("bin/memhost");
    std::fs::hard_link(env!("CARGO_BIN_EXE_memhost-cli"), &program).unwrap();
    let mut command = std::process::Command::new(program);
    command.args(words(&line)).env("HOME", terminal.home.path());
    command.env("MEMHOST_CACHE_DIR", memhost_tests::cache_dir());
    let done = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(done.status.success(), "{done:?}");
    let installed = terminal.host.data_dir().join("plugins");
    let files = std::fs::read_dir(installed).unwrap().count();
    assert_eq!(files, 3, "the component, its signature and its origin");
}
