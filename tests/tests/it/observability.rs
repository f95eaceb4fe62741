//! Metrics, readiness and `doctor`.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use memhost_core::{Check, Health};
use memhost_server::{InProcess, Method, Request};
use memhost_tests::{TestHost, repository};
use memhost_types::BindingLimits;
use serde_json::json;

use super::support::Api;

async fn get(host: &TestHost, path: &str) -> (u16, String) {
    let http = InProcess::new(Arc::clone(host.service()));
    let (status, body) = http
        .call(Request {
            method: Method::Get,
            path: path.to_owned(),
            body: None,
            headers: Vec::new(),
        })
        .await;
    (status, String::from_utf8(body).unwrap())
}

fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics
        .lines()
        .find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
    let line = line.unwrap_or_else(|| panic!("there is no {series} in\n{metrics}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_what_happened_and_have_no_companies_unless_asked() {
    for has_company in [false, true] {
        let host = TestHost::with(&["echo", "traps", "loops-in-call"], |options| {
            options.metrics_company_label = has_company;
            // This guest has to be compiled.
            options.compiled_dir = None;
        })
        .await
        .unwrap();
        let limits = BindingLimits { call_cpu_ms: 50, ..BindingLimits::default() };
        for (company, guest) in
            [("acme-1", "echo"), ("acme-2", "traps"), ("acme-3", "loops-in-call")]
        {
            host.bind(company, guest, limits).await.unwrap();
        }
        for _ in 0..3 {
            host.query("acme-1", "x").await.unwrap();
        }
        for _ in 0..9 {
            host.query("acme-2", "trap").await.unwrap_err();
        }
        host.query("acme-3", "x").await.unwrap_err();
        let (status, metrics) = get(&host, "/metrics").await;
        assert_eq!(status, 200);
        let series = |company: &str, outcome: &str, provider: &str| {
            let company = if has_company { company } else { "" };
            format!(
                concat!(
                    r#"memhost_operations_total{{kind="query",outcome="{}","#,
                    r#"provider="{}",company="{}"}}"#
                ),
                outcome, provider, company
            )
        };
        assert_eq!(value(&metrics, &series("acme-1", "succeeded", "echo")), 3.0);
        assert_eq!(value(&metrics, &series("acme-2", "trapped", "traps")), 8.0);
        assert_eq!(
            value(&metrics, &series("acme-2", "refused", "traps")),
            1.0,
            "the breaker is open"
        );
        assert_eq!(
            value(&metrics, r#"memhost_operation_duration_seconds_count{kind="query"}"#),
            13.0
        );
        assert_eq!(
            value(&metrics, r#"memhost_provider_duration_seconds_count{provider="echo"}"#),
            3.0
        );
        assert_eq!(value(&metrics, r#"memhost_limits_hit_total{limit="callCpuMs"}"#), 1.0);
        assert_eq!(value(&metrics, r#"memhost_breakers{state="open"}"#), 1.0);
        assert_eq!(value(&metrics, "memhost_bindings"), 3.0);
        assert_eq!(value(&metrics, r#"memhost_plugins{state="admitted"}"#), 4.0);
        assert_eq!(
            value(&metrics, r#"memhost_instances{state="idle"}"#),
            1.0,
            "failed instances are dropped"
        );
        assert!(value(&metrics, "memhost_compile_seconds_total") > 0.0);
        assert!(metrics.ends_with("# EOF\n"));
        assert_eq!(metrics.contains("acme-1"), has_company, "{metrics}");
        for name in names_in_alerts() {
            let is_there = |line: &str| {
                line.strip_prefix(&name).is_some_and(|rest| rest.starts_with(['{', ' ']))
            };
            assert!(metrics.lines().any(is_there), "an alert names {name}, which is not there");
        }
    }
}

/// The series that the alerts of the configuration's page name.
fn names_in_alerts() -> Vec<String> {
    let page = repository().join("host/docs/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("\n### Alerts\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let names = section.split(|part: char| !part.is_ascii_alphanumeric() && part != '_');
    let names: Vec<String> =
        names.filter(|name| name.starts_with("memhost_")).map(str::to_owned).collect();
    assert!(names.len() >= 5, "{names:?}");
    names
}

fn check(checks: &[Check], name: &str) -> Check {
    checks
        .iter()
        .find(|check| check.name == name)
        .unwrap_or_else(|| panic!("no check of {name}"))
        .clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_finds_what_is_wrong_and_says_what_to_do() {
    let host = TestHost::new(&["echo"]).await.unwrap();
    host.bind("acme", "echo", BindingLimits::default()).await.unwrap();
    host.query("acme", "x").await.unwrap();
    let checks = host.service().monitor().doctor().await;
    assert!(checks.iter().all(|check| check.health == Health::Ok), "{checks:?}");
    assert_eq!(get(&host, "/readyz").await, (200, "ready\n".to_owned()));
    std::fs::write(host.directory().join("plugins/bad.wasm"), b"\x7fELF").unwrap();
    std::fs::remove_file(host.directory().join("plugins/echo.wasm")).unwrap();
    host.service().control().scan_plugins().await;
    let key = host.data_dir().join("host.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let checks = host.service().monitor().doctor().await;
    for (name, found, advice) in [
        ("plugins", "native code", "memhost plugin list"),
        ("bindings", "a copy goes on serving", "memhost binding list"),
        ("keys", "host.key", "chmod 600"),
    ] {
        let check = check(&checks, name);
        assert_eq!(check.health, Health::Warning, "{check:?}");
        assert!(check.found.contains(found) && check.advice.contains(advice), "{check:?}");
    }
    let (status, body) = get(&host, "/control/v1/doctor").await;
    assert!(status == 200 && body.contains("chmod 600"), "{body}");
    assert!(host.usage("acme", "echo").await.unwrap().memory_bytes > 0);
}

/// What hinders a binding is no `ok`: a required grant that is missing, and an open circuit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_names_bindings_that_do_not_work() {
    let host = TestHost::new(&["traps", "cross-agent"]).await.unwrap();
    let api = Api::new(&host);
    let bindings = "/control/v1/companies/acme/bindings";
    api.post(bindings, &json!({"key": "bare", "providerKey": "cross-agent"})).await.fine();
    let found = check(&host.service().monitor().doctor().await, "bindings");
    assert_eq!(found.health, Health::Warning, "{found:?}");
    assert!(found.found.contains("`bare` of acme: the provider needs storage"), "{found:?}");
    let shown = api.get(&format!("{bindings}/bare")).await;
    assert!(
        shown["warnings"][0].as_str().unwrap().contains("memhost binding grant bare"),
        "{shown}"
    );
    api.put(&format!("{bindings}/bare/grants"), &json!({"storageBytes": 1 << 20})).await.fine();
    assert_eq!(check(&host.service().monitor().doctor().await, "bindings").health, Health::Ok);
    host.bind("acme", "traps", BindingLimits::default()).await.unwrap();
    for _ in 0..10 {
        let _ = host.query("acme", "trap").await;
    }
    let found = check(&host.service().monitor().doctor().await, "bindings");
    assert_eq!(found.health, Health::Warning, "{found:?}");
    assert!(found.found.contains("its circuit is open"), "{found:?}");
}

/// A company may have 1,000 bindings, each with a large configuration: their list has pages, in
/// number and in bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_of_bindings_has_pages() {
    let host = TestHost::new(&["hosted"]).await.unwrap();
    let api = Api::new(&host);
    let path = "/control/v1/companies/acme/bindings";
    for number in 0..20 {
        let config = json!({"key": "x".repeat(240 << 10)});
        let body =
            json!({"key": format!("b{number:02}"), "providerKey": "hosted", "config": config});
        api.post(path, &body).await.fine();
    }
    let (mut keys, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = api.get(&format!("{path}?limit=18{cursor}")).await;
        assert!(page.to_string().len() < (4 << 20) + (300 << 10));
        keys.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["key"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!((keys.len(), pages), (20, 2));
    assert!(keys.is_sorted(), "{keys:?}");
    let whole = api.get(path).await;
    assert!(whole["items"].as_array().unwrap().len() < 20 && whole["nextCursor"].is_string());
    let few = api.get(&format!("{path}?limit=3")).await;
    assert_eq!((few["items"].as_array().unwrap().len(), few["nextCursor"].is_string()), (3, true));
    assert_eq!(
        api.send(Method::Get, &format!("{path}?cursor=guessed"), None, &[]).await.status,
        400
    );
}
