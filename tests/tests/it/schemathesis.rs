//! The host against its own OpenAPI document, as schemathesis sees it, where that is installed.

use std::path::PathBuf;
use std::sync::Arc;

use memhost_server::{AdminToken, Endpoint, Surfaces};
use memhost_tests::{TestHost, needed, repository};
use tokio::sync::oneshot;

const TOKEN: &str = "a-token-of-the-operator";

/// Where it is: as `MEMHOST_SCHEMATHESIS` says, where the recipe installs it, or on the path.
fn installed() -> Option<PathBuf> {
    let named = std::env::var_os("MEMHOST_SCHEMATHESIS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join("schemathesis"));
    let ours = repository().join("target/venv/bin/schemathesis");
    named.into_iter().chain([ours]).chain(on_path).find(|file| file.is_file())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_keeps_to_its_document() {
    let missing = "schemathesis is not installed; `just schemathesis` installs it, or name it in MEMHOST_SCHEMATHESIS";
    let Some(schemathesis) = needed(installed().ok_or(missing)) else { return };
    let host = TestHost::new(&[]).await.unwrap();
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
    // A part of what the recipe does: every operation, with the cases that follow from its schemas.
    let arguments = ["--phases", "examples,coverage", "--max-time", "35", "--no-shrink", "--seed", "1"];
    let mut command = std::process::Command::new(repository().join("tests/schemathesis/run"));
    command.arg(&address).arg(schemathesis).args(arguments).env("MEMHOST_TOKEN", TOKEN);
    let done = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let _ = stop.send(());
    serving.await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}\n{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("Tested: "), "{said}");
}
