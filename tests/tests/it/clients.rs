//! The clients in Python and TypeScript that `just clients` makes from the OpenAPI document: they
//! are made from today's document, have all its operations, and their examples work.

use std::path::{Path, PathBuf};
use std::process::Command;

use memhost_server::openapi;
use memhost_tests::{Serving, TestHost, needed, repository};
use serde_json::Value;

use super::support::Api;

/// Operations whose bodies are lines of JSON, for which the document has no schema: the generator
/// of the client in Python leaves them out.
const NOT_IN_PYTHON: [&str; 3] = ["captureBatch", "importCompany", "restoreCompany"];

/// Where the recipe has made the client of a language.
fn made(language: &str) -> Result<PathBuf, String> {
    let directory = repository().join("target/clients").join(language);
    // Its last step writes this file.
    match directory.join("document.json").is_file() {
        true => Ok(directory),
        false => Err(format!(
            "{} does not exist; `just clients {language}` makes it",
            directory.display()
        )),
    }
}

fn json(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// Runs a program against a host, which then has its three operations in its log.
async fn captures_finds_and_forgets(mut command: Command) {
    let host = TestHost::new(&[]).await.unwrap();
    let serving = Serving::start(&host, "a-token-of-the-operator").await.unwrap();
    let token = Api::new(&host).agent("ada").await.token().to_owned();
    command
        .env("MEMHOST_URL", serving.url())
        .env("MEMHOST_TOKEN", token)
        .env("MEMHOST_COMPANY", "acme");
    let done = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}\n{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        ["captured 1 record", "found: Deploys are frozen on Fridays.", "forgotten: hard"]
    );
    let log = host.operations("acme").await.unwrap();
    let mut kinds: Vec<String> = log
        .iter()
        .map(|operation| format!("{} {}", operation.kind.as_str(), operation.outcome.as_str()))
        .collect();
    kinds.sort();
    assert!(log.iter().all(|operation| operation.principal.to_string() == "agent:ada"), "{log:?}");
    assert_eq!(kinds, ["capture succeeded", "forget succeeded", "query succeeded"]);
    serving.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_in_python_captures_finds_and_forgets() {
    let Some(client) = needed(made("python")) else { return };
    let mut command = Command::new(client.join("venv/bin/python"));
    command.arg(repository().join("sdk/python/example.py"));
    captures_finds_and_forgets(command).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_in_typescript_captures_finds_and_forgets() {
    let Some(client) = needed(made("typescript")) else { return };
    let mut command = Command::new("node");
    command.arg(client.join("example/example.js"));
    captures_finds_and_forgets(command).await;
}

#[test]
fn the_clients_are_made_from_the_document_of_this_host() {
    for language in ["python", "typescript"] {
        let Some(client) = needed(made(language)) else { continue };
        assert!(
            json(&client.join("document.json")) == openapi(),
            "the document has changed; `just clients {language}` makes the client again"
        );
        let version = openapi()["info"]["version"].as_str().unwrap().to_owned();
        let packed: Vec<String> = std::fs::read_dir(client.join("dist"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            // The packer of Python leaves one.
            .filter(|name| name != ".gitignore")
            .collect();
        assert!(!packed.is_empty(), "{language} has no package");
        for name in packed {
            assert!(name.contains(&version), "{name} is not of version {version}");
        }
    }
}

/// `captureBatch` is `capture_batch` there.
fn in_python(operation: &str) -> String {
    let mut name = String::new();
    for letter in operation.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[test]
fn the_client_in_python_has_every_operation_with_a_schema() {
    let Some(client) = needed(made("python")) else { return };
    let document = openapi();
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    let mut missing: Vec<&str> = Vec::new();
    for operation in operations {
        let (id, tag) = (operation["operationId"].as_str().unwrap(), &operation["tags"][0]);
        let module = format!("memhost_client/api/{}/{}.py", tag.as_str().unwrap(), in_python(id));
        if !client.join("package").join(module).is_file() {
            missing.push(id);
        }
    }
    missing.sort_unstable();
    assert_eq!(missing, NOT_IN_PYTHON, "sdk/python/README.md names those that are left out");
}
