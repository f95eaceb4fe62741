//! The explorer in a browser: what the demo makes and what fails beside it, on every page, as a person goes through them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use memhost_server::{AdminToken, Endpoint, Surfaces};
use memhost_tests::{TestHost, needed, repository};
use tokio::sync::oneshot;

const TOKEN: &str = "a-token-of-the-operator";

/// A program: as a variable says, or on the path.
fn program(variable: &str, name: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join(name));
    named.into_iter().chain([Path::new("/usr/bin").join(name)]).chain(on_path).find(|file| file.is_file())
}

/// What it takes, or what is missing.
fn installed() -> Result<(PathBuf, PathBuf, PathBuf), &'static str> {
    let scripts = repository().join("tests/browser");
    let node = program("MEMHOST_NODE", "node").ok_or("node is not installed")?;
    let chromium = program("MEMHOST_CHROMIUM", "chromium")
        .ok_or("chromium is not installed; name another build of it in MEMHOST_CHROMIUM")?;
    if !scripts.join("node_modules").is_dir() {
        return Err("what the scripts need is not installed; `npm ci --prefix tests/browser` installs it");
    }
    Ok((node, chromium, scripts.join("explorer.mjs")))
}

/// The company that `memhost demo` makes: this repository's documents and history.
fn demo(data_dir: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memhost-cli"));
    let done = command
        .args(["demo", "--once", "--data-dir"])
        .arg(data_dir)
        .env("MEMHOST_CACHE_DIR", memhost_tests::cache_dir())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_finds_and_does_everything_in_a_browser() {
    let Some((node, chromium, script)) = needed(installed()) else { return };
    let mut host = TestHost::with(&["extracts"], |options| {
        options.retry.first = Duration::from_millis(10);
        options.retry.longest = Duration::from_millis(40);
        options.retry.attempts = 5;
        if let Some(plugins) = &options.plugins_dir {
            std::fs::write(plugins.join("broken.wasm"), b"no component").unwrap();
        }
        demo(&options.data_dir);
    })
    .await
    .unwrap();
    let endpoint = Endpoint::bind(&"127.0.0.1:0".parse().unwrap(), Surfaces::All).await.unwrap();
    let address = endpoint.address().to_string();
    let (stop, stopped) = oneshot::channel::<()>();
    let token = AdminToken::known(TOKEN).unwrap();
    let serving = tokio::spawn(memhost_server::run(
        vec![endpoint],
        Arc::clone(host.service()),
        token,
        memhost_server::ServerOptions::default(),
        async move {
            let _ = stopped.await;
        },
    ));
    // The pictures stay there, to be looked at.
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    let mut command = Command::new(node);
    command.arg(script).arg(address).arg(&pictures).env("MEMHOST_TOKEN", TOKEN).env("MEMHOST_CHROMIUM", chromium);
    let done = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let _ = stop.send(());
    serving.await.unwrap().unwrap();
    host.stop().await;
    let (said, wrong) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}\n{wrong}\npictures: {}", pictures.display());
    println!("{said}pictures: {}", pictures.display());
}
