//! The providers of `plugins/examples`, if they are built. Their runtimes have imports, memories
//! and stacks that no Rust component has.

use std::path::PathBuf;

use memhost_conformance::{CheckOptions, Mode, Outcome, Selection, Source, Suite};
use memhost_sandbox::{AdmissionError, Compiler, Component, Sandbox, SandboxOptions};
use memhost_tests::{TestHost, compiled_dir, example_file, needed, repository};

/// Checks an example by every rule of the contract.
pub(super) async fn keeps_every_rule(name: &str, options: &CheckOptions) {
    let Some(file) = needed(example_file(name)) else { return };
    let suite =
        Suite::open(&Source::File(file), Some(compiled_dir()), Compiler::InProcess).await.unwrap();
    let selection = Selection { mode: Mode::Thorough, rules: Vec::new() };
    let report = suite.check(options, &selection).await.unwrap();
    suite.close().await;
    let mut passed = 0;
    let mut broken = Vec::new();
    for finding in &report.findings {
        match &finding.outcome {
            Outcome::Passed => passed += 1,
            Outcome::Failed { saw } => broken.push(format!("{}: {saw}", finding.rule.id)),
            Outcome::Skipped { .. } => {}
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(passed >= 45, "{passed} rules were tried");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_keeps_every_rule() {
    keeps_every_rule("python", &CheckOptions::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn javascript_keeps_every_rule() {
    keeps_every_rule("javascript", &CheckOptions::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_keeps_every_rule() {
    keeps_every_rule("c", &CheckOptions::default()).await;
}

/// Their runtimes import sockets, files and the environment. These are not granted, and the default
/// limits are enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn examples_serve_with_only_the_storage_grant() {
    let of = |name: &'static str| Some((name, needed(example_file(name))?));
    let found: Vec<(&str, PathBuf)> =
        ["python", "javascript", "c"].into_iter().filter_map(of).collect();
    let host = TestHost::new(&[]).await.unwrap();
    for (name, file) in &found {
        std::fs::copy(file, host.directory().join(format!("plugins/{name}.wasm"))).unwrap();
    }
    host.service().control().scan_plugins().await;
    // A scan does not wait for what takes long to compile.
    memhost_tests::eventually("all are admitted", async || {
        let admitted = host.service().control().plugins().admitted;
        found.iter().all(|(name, _)| {
            admitted.iter().any(|plugin| {
                plugin.inspection.description.provider_key.as_str() == format!("notes-{name}")
            })
        })
    })
    .await;
    for (name, _) in &found {
        host.bind(name, &format!("notes-{name}"), memhost_types::BindingLimits::default())
            .await
            .unwrap();
        let text = "Die Bäckerei öffnet um 7 Uhr — 営業時間 🥐";
        let written = host.write(name, text).await.unwrap();
        let hit = &host.query(name, "営業時間 BÄCKEREI").await.unwrap()[0];
        assert_eq!(
            (&hit.handle, hit.text.as_str(), hit.score),
            (&written, text, Some(1.0)),
            "{name}"
        );
    }
}

/// A component in Python consists of fourteen core modules, and one more for each library with
/// native code.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn components_with_many_modules_are_admitted() {
    let sandbox = Sandbox::new(SandboxOptions::default()).unwrap();
    let mut refused = Vec::new();
    for count in [32, 33] {
        let text = format!(
            "(component (core module $m) {})",
            "(core instance (instantiate $m)) ".repeat(count)
        );
        refused.push(
            Component::admit(&sandbox, wat::parse_str(text).unwrap(), None).await.unwrap_err(),
        );
    }
    // It is refused only for its missing export.
    assert!(matches!(refused[0], AdmissionError::NoProvider { .. }), "{}", refused[0]);
    let told = refused[1].to_string();
    assert!(told.contains("33") && told.contains("32"), "{told}");
}

/// Each example says how it is built, with pinned tools.
#[test]
fn every_example_has_a_recipe_with_pinned_tools() {
    for language in ["python", "javascript", "c"] {
        let folder = repository().join("plugins/examples").join(language);
        let recipe = std::fs::read_to_string(folder.join("build.sh")).unwrap();
        assert!(recipe.contains(&format!("examples/notes-{language}.wasm")), "{language}");
        let pinned =
            ["requirements.txt", "package-lock.json"].iter().any(|file| folder.join(file).exists());
        assert!(pinned, "{language} does not pin its tools");
    }
    let lock =
        std::fs::read_to_string(repository().join("plugins/examples/javascript/package-lock.json"))
            .unwrap();
    assert!(
        !lock.contains("\"resolved\""),
        "the lock file names a registry; make it without `resolved`"
    );
}
