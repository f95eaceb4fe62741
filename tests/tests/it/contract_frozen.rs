//! Components that were built for an earlier state of the contract and are not built again. Every
//! host of that minor version loads them, and they behave as before.

use std::path::{Path, PathBuf};

use memhost_conformance::{CheckOptions, Mode, Outcome, Selection, Source, Status, Suite};
use memhost_sandbox::{Compiler, OptionalInterface};
use memhost_tests::{TestHost, compiled_dir, repository};
use memhost_types::BindingLimits;
use wasmtime::component::types::ComponentFunc;
use wasmtime::component::{Component, Instance, Linker, Val};
use wasmtime::{Engine, Store, StoreContextMut};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

const INTERFACES: [OptionalInterface; 10] = [
    OptionalInterface::Correction,
    OptionalInterface::Profile,
    OptionalInterface::Extraction,
    OptionalInterface::Explain,
    OptionalInterface::Browse,
    OptionalInterface::Review,
    OptionalInterface::Transfer,
    OptionalInterface::Migration,
    OptionalInterface::Health,
    OptionalInterface::Erasure,
];

/// Each frozen component with the version of the contract in its name.
fn frozen() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(repository().join("tests/compat")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if let Some(version) =
            name.strip_prefix("complete-").and_then(|rest| rest.strip_suffix(".wasm"))
        {
            found.push((version.to_owned(), path.clone()));
        }
    }
    assert!(!found.is_empty());
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_component_keeps_every_rule() {
    for (version, file) in frozen() {
        let suite = Suite::open(&Source::File(file), Some(compiled_dir()), Compiler::InProcess)
            .await
            .unwrap();
        let selection = Selection { mode: Mode::Thorough, rules: Vec::new() };
        let report = suite.check(&CheckOptions::default(), &selection).await.unwrap();
        suite.close().await;
        let broken: Vec<String> = report
            .findings
            .iter()
            .filter_map(|finding| match &finding.outcome {
                Outcome::Failed { saw } => Some(format!("{}: {saw}", finding.rule.id)),
                _ => None,
            })
            .collect();
        assert!(broken.is_empty(), "{version}\n{}", broken.join("\n"));
        assert_eq!(report.status, Status::Passed, "{version}");
        // Each interface that the host calls was called, not only found.
        for interface in INTERFACES {
            let tried =
                report.findings.iter().filter(|finding| finding.rule.interface == Some(interface));
            let mut outcomes =
                tried.map(|finding| matches!(finding.outcome, Outcome::Passed)).peekable();
            assert!(
                outcomes.peek().is_none() || outcomes.any(|passed| passed),
                "{version}: {interface:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_component_serves_with_all_its_interfaces() {
    for (version, file) in frozen() {
        let host = TestHost::new(&[]).await.unwrap();
        std::fs::copy(&file, host.directory().join("plugins/frozen.wasm")).unwrap();
        host.service().control().scan_plugins().await;
        let status = host.service().control().plugins();
        let admitted = status
            .admitted
            .iter()
            .find(|one| one.inspection.description.provider_key.as_str() == "reference");
        let inspection =
            &admitted.unwrap_or_else(|| panic!("{version}: {:?}", status.refused)).inspection;
        assert_eq!(inspection.contract_version, version);
        assert_eq!(inspection.interfaces, INTERFACES);
        host.bind("acme", "reference", BindingLimits::default()).await.unwrap();
        let written = host.write("acme", "frozen and still served").await.unwrap();
        assert_eq!(host.query("acme", "served").await.unwrap()[0].handle, written);
    }
}

/// A store with an empty storage that accepts every write.
struct State {
    wasi: WasiCtx,
    table: wasmtime::component::ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

fn instance(file: &Path) -> (Store<State>, Instance) {
    let engine = Engine::default();
    let component = Component::from_file(&engine, file).unwrap();
    let mut linker = Linker::<State>::new(&engine);
    wasmtime_wasi::p2::add_to_linker_sync(&mut linker).unwrap();
    let none = || Val::Option(None);
    let ok = |value: Option<Val>| Val::Result(Ok(value.map(Box::new)));
    let mut binding = linker.instance("paperclip:memory/binding@0.1.0").unwrap();
    let answers = |value: Val| {
        move |_: StoreContextMut<'_, State>, _: ComponentFunc, _: &[Val], results: &mut [Val]| {
            results[0] = value.clone();
            Ok(())
        }
    };
    binding.func_new("config", answers(Val::String("{}".to_owned()))).unwrap();
    let mut storage = linker.instance("paperclip:memory/storage@0.1.0").unwrap();
    let page = Val::Record(vec![
        ("entries".to_owned(), Val::List(Vec::new())),
        ("next".to_owned(), none()),
    ]);
    storage.func_new("get", answers(ok(Some(none())))).unwrap();
    storage.func_new("scan", answers(ok(Some(page)))).unwrap();
    storage.func_new("apply", answers(ok(None))).unwrap();
    linker.define_unknown_imports_as_traps(&component).unwrap();
    let wasi = wasmtime_wasi::WasiCtxBuilder::new().build();
    let mut store =
        Store::new(&engine, State { wasi, table: wasmtime::component::ResourceTable::new() });
    let instance = linker.instantiate(&mut store, &component).unwrap();
    (store, instance)
}

/// What a function answers: the error as its case.
fn call(
    store: &mut Store<State>,
    instance: &Instance,
    interface: &str,
    function: &str,
    params: &[Val],
) -> Result<Val, String> {
    let interface = format!("paperclip:memory/{interface}@0.1.0");
    let of = instance.get_export_index(&mut *store, None, &interface).unwrap();
    let function = instance.get_export_index(&mut *store, Some(&of), function).unwrap();
    let function = instance.get_func(&mut *store, function).unwrap();
    let mut results = [Val::Bool(false)];
    function.call(&mut *store, params, &mut results).unwrap();
    let [result] = results;
    match result {
        Val::Result(Ok(Some(answer))) => Ok(*answer),
        Val::Result(Err(Some(error))) => match *error {
            Val::Variant(case, _) => Err(case),
            other => panic!("{interface}: {other:?}"),
        },
        other => panic!("{interface}: {other:?}"),
    }
}

/// Calls the component without memhost, as any host of that version may.
#[test]
fn a_frozen_component_answers_direct_calls() {
    let text = |text: &str| Val::String(text.to_owned());
    let none = || Val::Option(None);
    let member = |name: &str, value: Val| (name.to_owned(), value);
    let optional = [
        "agent-id",
        "actor-agent-id",
        "project-id",
        "issue-id",
        "run-id",
        "subject-id",
        "session-key",
        "namespace",
    ];
    let mut scope = vec![member("company-id", text("acme"))];
    scope.extend(optional.iter().map(|name| member(name, none())));
    let scope = Val::Record(scope);
    for (_, file) in frozen() {
        let (mut store, instance) = instance(&file);
        let mut ask = |interface: &str, function: &str, params: &[Val]| {
            call(&mut store, &instance, interface, function, params)
        };
        let profile =
            Val::Record(vec![member("summary", none()), member("usage", Val::List(Vec::new()))]);
        assert_eq!(ask("profile", "get-profile", std::slice::from_ref(&scope)), Ok(profile));
        let page = Val::Record(vec![
            member("items", Val::List(Vec::new())),
            member("continuation", Val::Variant("end".to_owned(), None)),
            member("usage", Val::List(Vec::new())),
        ]);
        assert_eq!(ask("review", "list-pending", &[scope.clone(), none(), Val::U32(10)]), Ok(page));
        let rejected = Val::Variant("reject".to_owned(), None);
        assert_eq!(
            ask("review", "decide", &[text("gone"), scope.clone(), rejected]),
            Err("not-found".to_owned())
        );
        let chunk = Val::Record(vec![member("lines", text("")), member("next-cursor", none())]);
        assert_eq!(ask("transfer", "export-records", &[scope.clone(), none()]), Ok(chunk));
        let line = r#"{"id":"r1","pending":true,"record":{"partition":{"agent":null,"subject":null,"namespace":null},"text":"one","summary":null,"metadata":null,"source":null,"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}}"#;
        let lines = text(&format!("{line}\n"));
        let request = Val::Record(vec![
            member("operation-id", text("import")),
            member("scope", scope.clone()),
            member("lines", lines),
        ]);
        let report =
            Val::Record(vec![member("imported", Val::U32(1)), member("unchanged", Val::U32(0))]);
        assert_eq!(ask("transfer", "import-records", &[request]), Ok(report));
    }
}
