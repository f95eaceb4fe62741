//! Directories and files that are foreign, too new, in use, damaged or not a component: the error
//! says so, and nothing is changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use memhost_core::{OpenError, Service, ServiceOptions};
use memhost_sandbox::{AdmissionError, Component, Sandbox, SandboxOptions};
use memhost_store::StoreError;
use memhost_tests::{TestHost, guest_file};
use tempfile::TempDir;

async fn open(path: &Path) -> Result<std::sync::Arc<Service>, OpenError> {
    Service::open(ServiceOptions {
        compiled_dir: Some(memhost_tests::compiled_dir()),
        ..ServiceOptions::new(path)
    })
    .await
}

fn listing(path: &Path) -> Vec<(String, u64)> {
    let mut all: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len())
        })
        .collect();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_directory_is_refused_and_not_changed() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("thesis.tex"), "years of work").unwrap();
    let before = listing(directory.path());
    let error = open(directory.path()).await.err().unwrap();
    assert!(matches!(error, OpenError::Store(StoreError::NotOurs { .. })), "{error}");
    assert!(error.to_string().contains("thesis.tex"), "{error}");
    assert_eq!(listing(directory.path()), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_of_a_newer_version_is_refused_and_not_changed() {
    let mut host = TestHost::new(&[]).await.unwrap();
    host.stop().await;
    let format = host.data_dir().join("FORMAT");
    let text = fs::read_to_string(&format).unwrap();
    let newer = text.replacen('1', "99", 1);
    assert_ne!(text, newer, "the format file does not name version 1: {text}");
    fs::write(&format, &newer).unwrap();
    let before = listing(host.data_dir());
    let error = open(host.data_dir()).await.err().unwrap();
    assert!(matches!(error, OpenError::Store(StoreError::TooNew { found: 99, .. })), "{error}");
    assert_eq!(listing(host.data_dir()), before);
    assert_eq!(fs::read_to_string(&format).unwrap(), newer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_on_the_same_directory_is_refused() {
    let host = TestHost::new(&["reference"]).await.unwrap();
    let worker = std::process::Command::new(env!("CARGO_BIN_EXE_crash-worker"))
        .args([host.data_dir(), &host.directory().join("plugins")])
        .arg("0")
        .output()
        .unwrap();
    assert!(!worker.status.success());
    let said = String::from_utf8_lossy(&worker.stderr).into_owned();
    assert!(said.contains("in use by another process"), "{said}");
    host.write("acme", "the first process goes on").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_cannot_be_written_is_refused() {
    // Not by permissions, because they do not stop root.
    let error = open(Path::new("/proc/memhost")).await.err().unwrap();
    assert!(error.to_string().contains("/proc/memhost"), "{error}");
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "a file").unwrap();
    assert!(open(&file).await.is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), "a file");
}

async fn admit(bytes: Vec<u8>) -> Result<Component, AdmissionError> {
    Component::admit(&Sandbox::new(SandboxOptions::default()).unwrap(), bytes, None).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_no_providers_are_refused_with_the_reason() {
    let whole = fs::read(guest_file("echo")).unwrap();
    for cut in [9, 100, whole.len() / 2, whole.len() - 1] {
        let error = admit(whole[..cut].to_vec()).await.unwrap_err();
        assert!(
            matches!(error, AdmissionError::Malformed(_) | AdmissionError::NoProvider { .. }),
            "{cut}: {error}"
        );
    }
    assert!(matches!(
        admit(b"\0asm\x01\0\0\0".to_vec()).await.unwrap_err(),
        AdmissionError::CoreModule
    ));
    let own = fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(own.len() < 64 << 20 || own.starts_with(b"\x7fELF"));
    assert!(matches!(admit(own[..1024].to_vec()).await.unwrap_err(), AdmissionError::NativeCode));
    assert!(matches!(admit(Vec::new()).await.unwrap_err(), AdmissionError::NotWasm { .. }));
    let large = admit(vec![0; (64 << 20) + 1]).await.unwrap_err();
    assert!(matches!(large, AdmissionError::TooLarge { .. }), "{large}");
}

/// Components that are too large for the pool. They are written as text here, because no compiler
/// makes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn components_that_do_not_fit_the_pool_are_refused() {
    let with = |module: &str, count: usize| {
        let instances = "(core instance (instantiate $module))".repeat(count);
        let text = format!(
            r#"(component (core module $module {module}) {instances}
                (instance $provider)
                (export "paperclip:memory/provider@0.1.0" (instance $provider)))"#
        );
        wat::parse_str(text).unwrap()
    };
    for (what, component) in [
        ("5 Wasm linear memories", with("(memory 1)", 5)),
        ("17", with("(table 1 funcref)", 17)),
        ("memory", with("(memory 65536)", 1)),
        ("5", with("(memory 1)(memory 1)(memory 1)(memory 1)(memory 1)", 1)),
    ] {
        let error = admit(component).await.unwrap_err();
        assert!(error.to_string().contains(what), "{what}: {error}");
        assert!(
            matches!(error, AdmissionError::TooDemanding { .. } | AdmissionError::Unlinkable(_)),
            "{what}: {error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_plugin_file_does_not_affect_the_others() {
    let host = TestHost::with(&["echo"], |options| {
        let plugins = options.plugins_dir.as_ref().unwrap();
        fs::write(plugins.join("elf.wasm"), b"\x7fELF\x02\x01\x01\0").unwrap();
        fs::write(plugins.join("empty.wasm"), b"").unwrap();
        fs::write(plugins.join("notes.txt"), b"not looked at").unwrap();
    })
    .await
    .unwrap();
    let plugins = host.service().control().plugins();
    let keys: Vec<_> = plugins
        .admitted
        .iter()
        .map(|plugin| plugin.inspection.description.provider_key.as_str())
        .collect();
    assert_eq!(keys, ["echo", "local-markdown"]);
    let mut refused: Vec<_> =
        plugins.refused.iter().map(|refused| refused.reason.clone()).collect();
    refused.sort();
    assert_eq!(refused.len(), 2);
    assert!(refused[0].contains("native code") && refused[1].contains("empty"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compiled_component_that_was_changed_is_not_loaded() {
    let mut host = TestHost::with(&["echo"], |options| options.compiled_dir = None).await.unwrap();
    host.stop().await;
    let compiled = host.data_dir().join("compiled");
    for entry in fs::read_dir(&compiled).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    host.start().await.unwrap();
    assert_eq!(host.service().control().plugins().admitted.len(), 2);
    host.bind("acme", "echo", memhost_types::BindingLimits::default()).await.unwrap();
    assert_eq!(host.query("acme", "x").await.unwrap().len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_that_share_a_directory_of_compiled_components_compile_each_once() {
    let shared = tempfile::tempdir().unwrap();
    for expected in [
        "0 components loaded without compiling, 2 compiled",
        "2 components loaded without compiling, 0 compiled",
    ] {
        let host = TestHost::with(&["echo"], |options| {
            options.compiled_dir = Some(shared.path().join("compiled"));
        })
        .await
        .unwrap();
        let checks = host.service().monitor().doctor().await;
        let found = &checks.iter().find(|check| check.name == "compiled cache").unwrap().found;
        assert_eq!(found, expected);
        assert!(!host.data_dir().join("compiled").exists());
    }
    let mode =
        |name: &str| fs::metadata(shared.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("compiled"), mode("compiled/compiled.key")), (0o700, 0o600));
    fs::set_permissions(shared.path().join("compiled"), fs::Permissions::from_mode(0o777)).unwrap();
    let wary = TestHost::with(&["echo"], |options| {
        options.compiled_dir = Some(shared.path().join("compiled"));
    })
    .await
    .unwrap();
    let own = fs::read_dir(wary.data_dir().join("compiled")).unwrap().count();
    assert_eq!(own, 2, "a file was loaded that another user may have written");
}
