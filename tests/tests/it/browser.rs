//! The explorer in a browser: every page, with the demo's data and with failures.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use memhost_tests::{Serving, TestHost, needed, repository};

const TOKEN: &str = "a-token-of-the-operator";

/// A program that a variable names, or that is on the path.
fn program(variable: &str, name: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join(name));
    named
        .into_iter()
        .chain([Path::new("/usr/bin").join(name)])
        .chain(on_path)
        .find(|file| file.is_file())
}

/// The programs that the test needs, or what is missing.
fn installed() -> Result<(PathBuf, PathBuf, PathBuf), &'static str> {
    let scripts = repository().join("tests/browser");
    let node = program("MEMHOST_NODE", "node").ok_or("node is not installed")?;
    let chromium = program("MEMHOST_CHROMIUM", "chromium")
        .ok_or("chromium is not installed; name another build of it in MEMHOST_CHROMIUM")?;
    if !scripts.join("node_modules").is_dir() {
        return Err(
            "what the scripts need is not installed; `npm ci --prefix tests/browser` installs it",
        );
    }
    Ok((node, chromium, scripts.join("explorer.mjs")))
}

/// The company of `memhost demo`: this repository's documents and history.
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
async fn every_page_and_form_works_in_a_browser() {
    let Some((node, chromium, script)) = needed(installed()) else { return };
    let mut host = TestHost::with(&["extracts", "facts"], |options| {
        options.retry.first = Duration::from_millis(10);
        options.retry.longest = Duration::from_millis(40);
        options.retry.attempts = 5;
        if let Some(plugins) = &options.plugins_dir {
            std::fs::write(plugins.join("broken.wasm"), b"no component").unwrap();
        }
        demo(&options.data_dir);
    })
    .await
    .unwrap()
    .surfaces(|surfaces| {
        let options = serde_json::json!({"pagespace": {"company": "demo", "binding": "facts"}});
        surfaces.integrations = serde_json::from_value(options).unwrap();
    });
    let serving = Serving::start(&host, TOKEN).await.unwrap();
    // The pictures stay there.
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    let mut command = Command::new(node);
    command
        .arg(script)
        .arg(serving.url())
        .arg(&pictures)
        .env("MEMHOST_TOKEN", TOKEN)
        .env("MEMHOST_CHROMIUM", chromium);
    let done = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    serving.stop().await.unwrap();
    host.stop().await;
    let (said, wrong) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}\n{wrong}\npictures: {}", pictures.display());
    println!("{said}pictures: {}", pictures.display());
}
