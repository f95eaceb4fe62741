//! The explorer's pages of jobs, bindings, costs and tokens: their roles, their forms, and what
//! they must not show.

use memhost_server::Method;
use serde_json::{Value, json};

use super::support::{Answer, Api, bind, extracting};

/// A viewer who is signed in.
pub(crate) struct Visitor {
    pub(crate) api: Api,
    pub(crate) session: String,
    pub(crate) csrf: String,
}

pub(crate) fn set_cookie(answer: &Answer, name: &str) -> String {
    let all = answer.headers.get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
    let found =
        all.filter_map(|cookie| cookie.split(';').next()).find(|cookie| cookie.starts_with(name));
    found
        .unwrap_or_else(|| panic!("no cookie {name}: {} {}", answer.status, answer.text))
        .to_owned()
}

pub(crate) fn csrf(text: &str) -> String {
    let at = text.find("name=\"csrf\" value=\"").map(|at| at + 19).unwrap();
    text[at..].split('"').next().unwrap().to_owned()
}

pub(crate) fn encode(fields: &[(&str, &str)]) -> String {
    let escape = |text: &str| -> String {
        text.bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect()
    };
    fields
        .iter()
        .map(|(name, value)| format!("{}={}", escape(name), escape(value)))
        .collect::<Vec<_>>()
        .join("&")
}

impl Visitor {
    pub(crate) async fn sign_in(api: &Api, token: &str) -> Self {
        let api = api.with_same();
        let page = api.send(Method::Get, "/sign-in", None, &[]).await;
        let tie = set_cookie(&page, "memhost_sign_in");
        let body = encode(&[("csrf", &csrf(&page.text)), ("token", token)]);
        let answer = api.send(Method::Post, "/sign-in", Some(body), &[("cookie", &tie)]).await;
        assert_eq!(answer.status, 303, "{}", answer.text);
        let session = set_cookie(&answer, "memhost_session");
        let page = api
            .send(
                Method::Get,
                "/nothing-here",
                None,
                &[("cookie", &session), ("accept", "text/html")],
            )
            .await;
        let page = match page.text.contains("name=\"csrf\"") {
            true => page,
            false => api.send(Method::Get, "/c/acme/jobs", None, &[("cookie", &session)]).await,
        };
        Self { api, session, csrf: csrf(&page.text) }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.api.send(Method::Get, path, None, &[("cookie", &self.session)]).await
    }

    /// A page that must exist.
    pub(crate) async fn page(&self, path: &str) -> String {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        assert!(
            !answer.text.contains("style=\"") && !answer.text.contains("onclick"),
            "{path} has a style or a script"
        );
        answer.text
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut all = vec![("csrf", self.csrf.as_str())];
        all.extend_from_slice(fields);
        self.api.send(Method::Post, path, Some(encode(&all)), &[("cookie", &self.session)]).await
    }

    /// Sends a form, which is accepted only with its token and leads to another page.
    pub(crate) async fn form(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        for forged in [encode(fields), encode(&[&[("csrf", "guessed")], fields].concat())] {
            let answer =
                self.api.send(Method::Post, path, Some(forged), &[("cookie", &self.session)]).await;
            assert_eq!(answer.status, 403, "{path} without its token: {}", answer.text);
        }
        let mut body = vec![("csrf", self.csrf.as_str())];
        body.extend_from_slice(fields);
        let elsewhere = [
            ("cookie", self.session.as_str()),
            ("origin", "https://evil.example"),
            ("host", "memhost"),
        ];
        let answer = self.api.send(Method::Post, path, Some(encode(&body)), &elsewhere).await;
        assert_eq!(answer.status, 403, "{path} from another site: {}", answer.text);
        let answer = self.post(path, fields).await;
        assert_eq!(answer.status, 303, "{path}: {}", answer.text);
        answer
    }
}

async fn token(api: &Api, path: &str, body: &Value) -> String {
    api.post(path, body).await.fine()["value"].as_str().unwrap().to_owned()
}

pub(crate) async fn operator(api: &Api) -> Visitor {
    let value = token(api, "/control/v1/tokens", &json!({"name": "op", "role": "operator"})).await;
    Visitor::sign_in(api, &value).await
}

pub(crate) async fn in_company(api: &Api, company: &str, role: &str) -> Visitor {
    let agent = (role == "agent").then_some("ada");
    let body = json!({"name": role, "role": role, "agentId": agent});
    let value = token(api, &format!("/control/v1/companies/{company}/tokens"), &body).await;
    Visitor::sign_in(api, &value).await
}

pub(crate) async fn first(api: &Api, list: &str) -> String {
    let items = api.get(&format!("/control/v1/companies/acme/{list}")).await;
    items["items"][0]["id"].as_str().unwrap_or_else(|| panic!("no {list}: {items}")).to_owned()
}

fn event(id: &str, text: &str) -> Value {
    json!({
        "hookKind": "post_run_capture", "hookId": id, "triggeredAt": "2026-11-20T10:00:00Z",
        "waitMs": 20_000,
        "scope": {"companyId": "acme"},
        "source": {"kind": "run", "companyId": "acme", "runId": "r1"},
        "payload": {"text": text},
    })
}

/// One of everything: a failed job, a review item, a dead letter.
pub(crate) async fn filled() -> (memhost_tests::TestHost, Api) {
    let (host, api) = extracting().await;
    api.capture("acme", "job fails").await.fine();
    api.until("/control/v1/companies/acme/jobs", |jobs| jobs["items"][0]["status"] == "failed")
        .await;
    api.post("/runtime/v1/companies/acme/hooks", &event("dead", "flaky 99")).await.fine();
    api.until("/control/v1/companies/acme/deliveries", |all| all["items"][0]["status"] == "dead")
        .await;
    bind(&api, "acme", "careful", &json!({"review": {"all": true}})).await;
    let text =
        json!({"text": "<script>alert(1)</script> & so on", "kind": "fact", "confidence": 0.9})
            .to_string();
    api.capture("acme", &text).await.fine();
    (host, api)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_allows_exactly_its_roles() {
    let (_host, api) = filled().await;
    api.capture("other", "something").await.fine();
    let digest =
        api.get("/control/v1/plugins").await["admitted"][0]["digest"].as_str().unwrap().to_owned();
    let (job, review, delivery) =
        (first(&api, "jobs").await, first(&api, "reviews").await, first(&api, "deliveries").await);
    let token_id = token_of(&api).await;
    let looked_at: Vec<String> = [
        "jobs",
        "jobs?status=failed&bindingKey=extracts&sourceKind=run&since=2020-01-01&until=2099-01-01",
        &format!("jobs/{job}"),
        "reviews",
        "reviews?status=pending&kind=fact&piiRisk=0&bindingKey=careful",
        &format!("reviews/{review}"),
        "hooks",
        "hooks?status=dead&hookKind=post_run_capture&hookId=dead",
        &format!("hooks/{delivery}"),
        "bindings",
        "bindings/careful",
        "resolve?agentId=ada",
        "tokens",
        "costs",
        "costs?by=day&then=provider&since=2026-01-01&until=2099-01-01",
        "costs.csv",
        "cost-events",
        "charges",
        "budgets",
        "activity",
        "events",
        "events?type=session.started&agentKind=claude&since=2026-01-01",
    ]
    .iter()
    .map(|path| format!("/c/acme/{path}"))
    .collect();
    let changed: Vec<String> = [
        "new-binding",
        "bindings/careful/edit",
        "bindings/careful/delete",
        "tokens/new",
        &format!("tokens/{token_id}/rotate"),
        &format!("tokens/{token_id}/revoke"),
        &format!("jobs/{job}/cancel"),
    ]
    .iter()
    .map(|path| format!("/c/acme/{path}"))
    .collect();
    let of_host = [
        "/plugins".to_owned(),
        format!("/plugins/{digest}"),
        "/tokens".to_owned(),
        "/tokens/new".to_owned(),
    ];
    let operator = operator(&api).await;
    let (admin, auditor) = (
        in_company(&api, "acme", "company_administrator").await,
        in_company(&api, "acme", "auditor").await,
    );
    let (agent, outsider) = (
        in_company(&api, "acme", "agent").await,
        in_company(&api, "other", "company_administrator").await,
    );
    for path in looked_at.iter().chain(&changed) {
        let is_change = changed.contains(path);
        let expected = [200, 200, if is_change { 403 } else { 200 }, 403, 403];
        for (visitor, expected) in
            [&operator, &admin, &auditor, &agent, &outsider].into_iter().zip(expected)
        {
            let answer = visitor.get(path).await;
            assert_eq!(answer.status, expected, "{path}: {}", answer.text);
            assert!(!answer.text.contains("<script>alert"), "{path} lets a script through");
        }
    }
    for path in &of_host {
        assert_eq!(operator.get(path).await.status, 200, "{path}");
        assert_eq!(admin.get(path).await.status, 403, "{path}");
    }
    // A viewer who may not change something sees no button for it.
    for (path, button) in [
        (format!("/c/acme/jobs/{job}"), "Retry"),
        (format!("/c/acme/reviews/{review}"), "Approve"),
        (format!("/c/acme/hooks/{delivery}"), "Replay"),
        ("/c/acme/bindings/careful".to_owned(), "Disable"),
        ("/c/acme/tokens".to_owned(), "Create token"),
    ] {
        assert!(admin.page(&path).await.contains(button), "{path}");
        assert!(!auditor.page(&path).await.contains(button), "{path}");
    }
    assert!(operator.page("/c/acme/bindings/careful").await.contains("Save permissions"));
    assert!(!admin.page("/c/acme/bindings/careful").await.contains("Save permissions"));
    // A refusal is the same whether or not the thing exists.
    let refusal = |text: &str| text[text.find("data-problem").unwrap()..].to_owned();
    let (one, none) = (
        outsider.get("/c/acme/bindings/careful").await,
        outsider.get("/c/acme/bindings/nothing").await,
    );
    let without_id = |text: String| text.split("<dl").next().unwrap_or_default().to_owned();
    assert_eq!(without_id(refusal(&one.text)), without_id(refusal(&none.text)));
}

async fn token_of(api: &Api) -> String {
    let body = json!({"name": "kept", "role": "auditor"});
    let made = api.post("/control/v1/companies/acme/tokens", &body).await.fine();
    made["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_deliveries_and_reviews_are_changed_through_forms() {
    let (_host, api) = filled().await;
    let admin = in_company(&api, "acme", "company_administrator").await;
    let auditor = in_company(&api, "acme", "auditor").await;
    let job = first(&api, "jobs").await;
    let retry = format!("/c/acme/jobs/{job}/retry");
    assert_eq!(auditor.post(&retry, &[]).await.status, 403);
    admin.form(&retry, &[]).await;
    let path = format!("/control/v1/companies/acme/jobs/{job}");
    assert!(admin.page(&format!("/c/acme/jobs/{job}")).await.contains("The job is queued again."));
    api.until(&path, |job| job["attempts"].as_u64() > Some(1) && job["status"] == "failed").await;
    assert_eq!(
        admin.post(&format!("/c/acme/jobs/{job}/cancel"), &[]).await.status,
        409,
        "it has ended"
    );

    let delivery = first(&api, "deliveries").await;
    admin.form(&format!("/c/acme/hooks/{delivery}/replay"), &[]).await;
    let activity = admin.page("/c/acme/activity").await;
    assert!(
        activity.contains("replayed the delivery") && activity.contains("changed the job"),
        "{activity}"
    );

    let review = first(&api, "reviews").await;
    let page = admin.page(&format!("/c/acme/reviews/{review}")).await;
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
    let edit = [("decision", "edit"), ("text", "two\r\nlines")];
    admin.form(&format!("/c/acme/reviews/{review}"), &edit).await;
    let decided = api.get("/control/v1/companies/acme/reviews?status=approved").await;
    assert_eq!(decided["items"][0]["text"], "two\nlines", "{decided}");
    assert_eq!(
        admin.post(&format!("/c/acme/reviews/{review}"), &[("decision", "reject")]).await.status,
        409
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bindings_are_created_assigned_granted_and_disabled() {
    let (_host, api) = extracting().await;
    let (operator, admin) =
        (operator(&api).await, in_company(&api, "acme", "company_administrator").await);
    // An error is shown beside its field, and nothing is created.
    let bad =
        [("key", "m"), ("providerKey", "local-markdown"), ("config", r#"{"ranking": {"b": 7}}"#)];
    let answer = admin.post("/c/acme/bindings", &bad).await;
    assert_eq!(answer.status, 422, "{}", answer.text);
    assert!(
        answer.text.contains("<code>/ranking/b</code>")
            && answer.text.contains("&quot;ranking&quot;"),
        "{}",
        answer.text
    );
    let answer = admin
        .post(
            "/c/acme/bindings",
            &[("key", "m"), ("providerKey", "local-markdown"), ("config", "{")],
        )
        .await;
    assert!(answer.status == 422 && answer.text.contains("is not valid here"), "{}", answer.text);
    assert_eq!(
        api.get("/control/v1/companies/acme/bindings").await["items"].as_array().unwrap().len(),
        1
    );
    admin.form("/c/acme/bindings", &[("key", "m"), ("providerKey", "local-markdown")]).await;
    let binding = "/control/v1/companies/acme/bindings/m";
    assert!(api.get(binding).await["enabled"].as_bool().unwrap());

    admin.form("/c/acme/bindings/m/switch", &[("enabled", "false"), ("revision", "1")]).await;
    assert_eq!(api.get(binding).await["enabled"], false);
    let stale =
        admin.post("/c/acme/bindings/m/switch", &[("enabled", "true"), ("revision", "1")]).await;
    assert_eq!(stale.status, 412, "it was changed meanwhile");
    admin.form("/c/acme/bindings/m/agents", &[("agentId", "ada"), ("on", "true")]).await;
    assert_eq!(
        admin.post("/c/acme/bindings/m/agents", &[("on", "true")]).await.status,
        400,
        "which agent?"
    );
    let resolved = admin.page("/c/acme/resolve?agentId=ada").await;
    assert!(
        resolved.contains("data-decides") && resolved.contains("/c/acme/bindings/m"),
        "{resolved}"
    );
    admin.form("/c/acme/bindings/m/default", &[("on", "true")]).await;
    assert_eq!(api.get(binding).await["isDefault"], true);

    // Only an operator sets grants.
    let path = "/c/acme/bindings/extracts/grants";
    let page = operator.page("/c/acme/bindings/extracts").await;
    assert!(
        page.contains("Where it might send something") && page.contains("storage of 64 MiB"),
        "{page}"
    );
    let (storage, http) =
        ("asked storage of 67108864 bytes", "asked HTTP to https://api.example.com");
    let decision = [("revision", "1"), (storage, "asked"), (http, "no")];
    assert_eq!(admin.post(path, &decision).await.status, 403);
    assert_eq!(
        operator.post(path, &[("revision", "1"), (storage, "asked")]).await.status,
        409,
        "not all was decided"
    );
    operator.form(path, &decision).await;
    let granted = api.get("/control/v1/companies/acme/bindings/extracts/grants").await;
    assert_eq!(
        (&granted["granted"]["http"], &granted["granted"]["storageBytes"]),
        (&json!([]), &json!(64 << 20))
    );
    assert!(admin.page("/c/acme/activity").await.contains("changed the permissions of"));

    let edit =
        [("revision", "2"), ("config", ""), ("policy", r#"{"pii": "redact"}"#), ("version", "")];
    admin.form("/c/acme/bindings/extracts/edit", &edit).await;
    assert_eq!(
        api.get("/control/v1/companies/acme/bindings/extracts").await["policy"]["pii"],
        "redact"
    );
    admin.form("/c/acme/bindings/extracts/reset", &[]).await;
    let revision = api.get(binding).await["revision"].to_string();
    admin.form("/c/acme/bindings/m/delete", &[("revision", &revision)]).await;
    assert_eq!(api.send(Method::Get, binding, None, &[]).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_shown_once() {
    let (_host, api) = extracting().await;
    let admin = in_company(&api, "acme", "company_administrator").await;
    let fields = [
        ("name", "ada's <laptop>"),
        ("role", "agent"),
        ("agentId", "ada"),
        ("expires", "week"),
        ("op.query", "on"),
    ];
    assert_eq!(
        admin
            .api
            .send(
                Method::Post,
                "/c/acme/tokens",
                Some(encode(&fields)),
                &[("cookie", &admin.session)]
            )
            .await
            .status,
        403
    );
    let answer = admin.post("/c/acme/tokens", &fields).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.headers["cache-control"], "no-store");
    let value = |text: &str| {
        let at = text.find("<pre class=\"secret\">").unwrap() + 20;
        text[at..].split('<').next().unwrap().to_owned()
    };
    let made = value(&answer.text);
    assert_eq!(answer.text.matches(&made).count(), 1);
    assert!(api.with(&made).query("acme", "x").await.is_empty(), "it is good");
    assert_eq!(api.with(&made).capture("acme", "x").await.status, 403, "for its operations only");
    for path in ["/c/acme/tokens", "/c/acme/activity", "/c/acme"] {
        let page = admin.page(path).await;
        assert!(!page.contains(&made), "{path} shows the value");
        assert!(!page.contains("<laptop>"));
    }
    let wrong = admin
        .post("/c/acme/tokens", &[("name", "x"), ("role", "agent"), ("expires", "week")])
        .await;
    assert!(wrong.status == 422 && wrong.text.contains("agentId"), "{}", wrong.text);
    let tokens = api.get("/control/v1/companies/acme/tokens").await;
    let id = tokens["items"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    let rotated = admin.post(&format!("/c/acme/tokens/{id}/rotate"), &[]).await;
    let fresh = value(&rotated.text);
    assert_ne!(fresh, made);
    assert_eq!(
        api.with(&made).capture("acme", "x").await.status,
        401,
        "the one before is good for nothing"
    );
    admin.form(&format!("/c/acme/tokens/{id}/revoke"), &[]).await;
    assert_eq!(api.with(&fresh).capture("acme", "x").await.status, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn costs_are_summed_and_exported_and_budgets_are_set() {
    let (_host, api) = extracting().await;
    let admin = in_company(&api, "acme", "company_administrator").await;
    let body = json!({
        "scope": {"companyId": "acme", "agentId": "=HYPERLINK(\"x\")"},
        "source": {"kind": "run", "companyId": "acme", "runId": "r1"},
        "payload": {"text": "metered 12.5"},
    });
    api.post("/runtime/v1/companies/acme/capture", &body).await.fine();
    let csv = admin.get("/c/acme/costs.csv?by=agent&then=binding").await;
    assert!(csv.headers["content-type"].to_str().unwrap().starts_with("text/csv"));
    assert!(csv.headers["content-disposition"].to_str().unwrap().contains(".csv\""));
    let lines: Vec<&str> = csv.text.split("\r\n").collect();
    assert!(
        lines[0].starts_with("agent,binding,operations,") && lines[0].ends_with(",latencyP99Us"),
        "{}",
        lines[0]
    );
    assert!(
        csv.text.ends_with("\r\n") && csv.text.contains("\"'=HYPERLINK(\"\"x\"\")\",extracts,"),
        "{}",
        csv.text
    );
    let page = admin.page("/c/acme/costs?by=day").await;
    assert!(page.contains("data-filter") && page.contains("figure class=\"plot\""), "{page}");
    assert_eq!(admin.get("/c/acme/costs?by=colour").await.status, 400);

    let set = [("period", "month"), ("limit", "12.50"), ("warn", "75")];
    admin.form("/c/acme/budgets", &set).await;
    let budgets = api.get("/control/v1/companies/acme/budgets").await;
    assert_eq!(
        (&budgets["items"][0]["limitCents"], &budgets["items"][0]["warnShare"]),
        (&json!(1250), &json!(0.75))
    );
    let wrong = admin.post("/c/acme/budgets", &[("period", "day"), ("limit", "much")]).await;
    assert!(wrong.status == 422 && wrong.text.contains("is not an amount"), "{}", wrong.text);
    assert!(admin.page("/c/acme/budgets").await.contains("$12.50"));
    admin.form("/c/acme/budgets/remove", &[("period", "month")]).await;
    assert!(
        api.get("/control/v1/companies/acme/budgets").await["items"].as_array().unwrap().is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_are_shown_and_scanned_for() {
    let (host, api) = extracting().await;
    let operator = operator(&api).await;
    std::fs::write(host.directory().join("plugins/broken<b>.wasm"), b"no component").unwrap();
    operator.form("/plugins/scan", &[]).await;
    let page = operator.page("/plugins").await;
    assert!(page.contains("broken&lt;b&gt;.wasm") && page.contains("extracts"), "{page}");
    let plugins = api.get("/control/v1/plugins").await;
    let plugins = plugins["admitted"].as_array().unwrap();
    let digest =
        plugins.iter().find(|p| p["description"]["providerKey"] == "extracts").unwrap()["digest"]
            .clone();
    let page = operator.page(&format!("/plugins/{}", digest.as_str().unwrap())).await;
    assert!(
        page.contains("Where it might send something")
            && page.contains("/c/acme/bindings/extracts"),
        "{page}"
    );
    let none = format!("/plugins/sha256:{}", "0".repeat(64));
    assert_eq!(operator.get(&none).await.status, 404);
}
