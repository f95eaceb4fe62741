//! The host against its own OpenAPI document, with schemathesis if it is installed.

use std::path::PathBuf;

use memhost_tests::{Serving, TestHost, needed, repository};

const TOKEN: &str = "a-token-of-the-operator";

/// Its path: as `MEMHOST_SCHEMATHESIS` says, where the recipe installs it, or on the path.
fn installed() -> Option<PathBuf> {
    let named = std::env::var_os("MEMHOST_SCHEMATHESIS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join("schemathesis"));
    let ours = repository().join("target/venv/bin/schemathesis");
    named.into_iter().chain([ours]).chain(on_path).find(|file| file.is_file())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_match_the_openapi_document() {
    let missing = "schemathesis is not installed; `just schemathesis` installs it, or name it in \
                   MEMHOST_SCHEMATHESIS";
    let Some(schemathesis) = needed(installed().ok_or(missing)) else { return };
    let host = TestHost::new(&[]).await.unwrap();
    let serving = Serving::start(&host, TOKEN).await.unwrap();
    // A part of the recipe: every operation, with cases derived from its schemas.
    let arguments =
        ["--phases", "examples,coverage", "--max-time", "35", "--no-shrink", "--seed", "1"];
    let mut command = std::process::Command::new(repository().join("tests/schemathesis/run"));
    command.arg(serving.url()).arg(schemathesis).args(arguments).env("MEMHOST_TOKEN", TOKEN);
    let done = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    serving.stop().await.unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}\n{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("Tested: "), "{said}");
}
