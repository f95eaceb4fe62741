//! The explorer as a browser has it: signing in and out, what every page forbids, who sees what,
//! operations, the overview, and pages that are told that something changed.

use std::sync::Arc;

use memhost_explorer::{LinkTemplate, SourceLinks};
use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::{Api, bind, extracting};
use super::ui_pages::{Visitor, csrf, encode, filled, in_company, operator, set_cookie};

const HOSTILE: &str = "<script>alert(1)<b>\"'&";

/// A capture about everything that a filter knows, with text that no page may take for its own.
async fn capture(api: &Api, text: &str, agent: &str) -> Value {
    let body = json!({
        "scope": {
            "companyId": "acme", "agentId": agent, "projectId": "p1", "issueId": "PAP 7",
            "runId": "r 1",
            "sessionKey": "s1", "subjectId": HOSTILE,
        },
        "source": {"kind": "run", "companyId": "acme", "runId": "r 1"},
        "payload": {"text": text},
    });
    api.post("/runtime/v1/companies/acme/capture", &body).await.fine()
}

/// The text between two others.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let at = text.find(from).unwrap_or_else(|| panic!("no {from} in {text}")) + from.len();
    text[at..].split(to).next().unwrap()
}

fn rows(page: &str) -> usize {
    page.matches("<tr data-key=").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_signs_in_with_a_token_and_out_again() {
    let (_host, api) = extracting().await;
    let anybody = api.with("nobody's");
    let page = anybody.send(Method::Get, "/sign-in", None, &[]).await;
    let tie = set_cookie(&page, "memhost_sign_in");
    for (given, field) in
        [("wrong", csrf(&page.text)), ("", csrf(&page.text)), ("wrong", "guessed".to_owned())]
    {
        let body = encode(&[("csrf", &field), ("token", given)]);
        let answer = anybody.send(Method::Post, "/sign-in", Some(body), &[("cookie", &tie)]).await;
        assert_ne!(answer.status, 303, "{given} let somebody in");
        let set = answer.headers.get_all("set-cookie").iter();
        assert!(
            !set.into_iter().any(|cookie| cookie.to_str().unwrap().starts_with("memhost_session="))
        );
    }
    // Anybody may send this form, so it costs little whatever it has.
    for (fields, status) in [(1 << 20, 413), (2_000, 400)] {
        let answer = anybody
            .send(Method::Post, "/sign-in", Some("a=b&".repeat(fields)), &[("cookie", &tie)])
            .await;
        assert_eq!(answer.status, status, "{fields} fields");
    }
    let admin = in_company(&api, "acme", "company_administrator").await;
    // What the session's cookie forbids: a script to read it, another site to send it.
    let value =
        api.post("/control/v1/tokens", &json!({"name": "op", "role": "operator"})).await.fine();
    let (id, value) =
        (value["id"].as_str().unwrap().to_owned(), value["value"].as_str().unwrap().to_owned());
    let body = encode(&[("csrf", &csrf(&page.text)), ("token", &value)]);
    let answer = anybody.send(Method::Post, "/sign-in", Some(body), &[("cookie", &tie)]).await;
    let cookies: Vec<&str> =
        answer.headers.get_all("set-cookie").iter().map(|c| c.to_str().unwrap()).collect();
    let session = cookies.iter().find(|cookie| cookie.starts_with("memhost_session=")).unwrap();
    assert!(session.contains("HttpOnly") && session.contains("SameSite=Strict"), "{session}");
    assert!(!session.contains(&value), "the cookie is not the token");

    // A token that is revoked ends its session, and the next request is asked to sign in.
    let revoked = Visitor::sign_in(&anybody, &value).await;
    assert_eq!(revoked.get("/c/acme").await.status, 200);
    api.send(Method::Delete, &format!("/control/v1/tokens/{id}"), None, &[]).await.fine();
    let answer = revoked.get("/c/acme/operations?kind=query").await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.headers["location"], "/sign-in?next=%2Fc%2Facme%2Foperations%3Fkind%3Dquery");

    assert_eq!(
        admin.api.send(Method::Post, "/sign-out", None, &[("cookie", &admin.session)]).await.status,
        403
    );
    assert_eq!(admin.get("/c/acme").await.status, 200, "a forged sign-out does nothing");
    admin.form("/sign-out", &[]).await;
    assert_eq!(admin.get("/c/acme").await.status, 303);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_line_of_the_navigation_leads_to_a_page_that_runs_nothing_from_elsewhere() {
    let (_host, api) = filled().await;
    for visitor in [operator(&api).await, in_company(&api, "acme", "company_administrator").await] {
        let page = visitor.page("/c/acme").await;
        let nav = between(&page, "<nav id=\"nav\"", "</nav>");
        let links: Vec<&str> =
            nav.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(links.len() > 9, "{links:?}");
        for link in links {
            let answer = visitor.get(link).await;
            assert_eq!(answer.status, 200, "{link}: {}", answer.text);
            let policy = answer.headers["content-security-policy"].to_str().unwrap();
            assert!(
                policy.contains("default-src 'none'") && policy.contains("script-src 'self'"),
                "{link}: {policy}"
            );
            assert!(
                !policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"),
                "{link}: {policy}"
            );
            assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{link}");
            assert_eq!(answer.headers["cache-control"], "no-store", "{link}");
            assert_eq!(
                answer.text.matches("<script").count(),
                1,
                "{link} has more than the one script"
            );
            assert_eq!(answer.text.matches("<h1").count(), 1, "{link}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_companys_pages_look_as_if_they_did_not_exist() {
    let (_host, api) = extracting().await;
    let made = capture(&api, "ours", "ada").await;
    let operation = made["operationId"].as_str().unwrap();
    let outsider = in_company(&api, "other", "company_administrator").await;
    let told = |text: &str| between(text, "data-problem", "<dl").to_owned();
    for page in ["", "/operations", "/live", &format!("/operations/{operation}")] {
        let (theirs, none) = (
            outsider.get(&format!("/c/acme{page}")).await,
            outsider.get(&format!("/c/nothing{page}")).await,
        );
        assert_eq!((theirs.status, none.status), (403, 403), "{page}");
        assert_eq!(told(&theirs.text).replace("acme", "nothing"), told(&none.text), "{page}");
    }
    // An id leads nowhere in another company.
    assert_eq!(outsider.get(&format!("/c/other/operations/{operation}")).await.status, 404);
    assert_eq!(operator(&api).await.get("/c/acme/operations/nonsense").await.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_are_filtered_and_the_filter_says_so() {
    let (_host, api) = extracting().await;
    capture(&api, "one", HOSTILE).await;
    capture(&api, "two", "ada").await;
    api.query("acme", "one").await;
    let visitor = in_company(&api, "acme", "auditor").await;
    assert_eq!(rows(&visitor.page("/c/acme/operations").await), 3);
    for (query, expected) in [
        ("kind=query", 1),
        ("kind=capture", 2),
        ("agentId=ada", 1),
        ("issueId=PAP+7", 2),
        ("projectId=p1&runId=r+1&sessionKey=s1", 2),
        ("sourceKind=run", 2),
        ("sourceKind=issue", 0),
        ("hookKind=post_run_capture", 0),
        ("outcome=succeeded", 3),
        ("outcome=failed", 0),
        ("bindingKey=extracts", 3),
        ("bindingKey=another", 0),
        ("since=2020-01-01&until=2099-01-01", 3),
        ("until=2020-01-01", 0),
        ("agentId=ada&kind=query", 0),
        ("kind=&agentId=", 3),
    ] {
        let page = visitor.page(&format!("/c/acme/operations?{query}")).await;
        assert_eq!(rows(&page), expected, "{query}");
        assert_eq!(page.contains("No matching operations"), expected == 0, "{query}");
    }
    let page = visitor
        .page(&format!("/c/acme/operations?{}&kind=capture", encode(&[("agentId", HOSTILE)])))
        .await;
    assert_eq!(rows(&page), 1);
    let shown = "&lt;script&gt;alert(1)&lt;b&gt;&quot;'&amp;";
    assert!(page.contains(&format!("name=\"agentId\" value=\"{shown}\"")), "{page}");
    assert!(page.contains("<option value=\"capture\" selected>"), "{page}");
    assert!(!page.contains("<script>alert"), "{page}");
    for wrong in ["kind=everything", "colour=red", "since=yesterday", "cursor=made-up"] {
        assert_eq!(
            visitor.get(&format!("/c/acme/operations?{wrong}")).await.status,
            400,
            "{wrong}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_operations_than_a_page_holds_are_on_the_next() {
    let (_host, api) = extracting().await;
    for _ in 0..53 {
        api.query("acme", "x").await;
    }
    let visitor = in_company(&api, "acme", "auditor").await;
    let first = visitor.page("/c/acme/operations?kind=query").await;
    assert_eq!(rows(&first), 50);
    assert!(first.len() < 60_000, "{} bytes even without packing", first.len());
    let next = between(&first, "data-next href=\"", "\"").replace("&amp;", "&");
    assert!(next.contains("kind=query"), "{next}");
    let second = visitor.page(&next).await;
    assert_eq!(rows(&second), 3);
    let keys = |page: &str| {
        page.split("<tr data-key=\"").skip(1).map(|row| row[..20].to_owned()).collect::<Vec<_>>()
    };
    assert!(keys(&first).iter().all(|key| !keys(&second).contains(key)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operations_page_shows_what_its_record_has() {
    let host = TestHost::new(&["extracts"]).await.unwrap().surfaces(|surfaces| {
        surfaces.links = SourceLinks {
            issue: Some(
                LinkTemplate::of_issue("https://paperclip.example/issues/{issueId}").unwrap(),
            ),
            run: Some(
                LinkTemplate::of_run("https://paperclip.example/{companyId}/runs/{runId}").unwrap(),
            ),
        };
    });
    let api = Api::new(&host);
    bind(&api, "acme", "extracts", &json!({"retention": {"snapshots": "full"}})).await;
    let visitor = in_company(&api, "acme", "auditor").await;
    let made = capture(&api, "metered 12.5", HOSTILE).await;
    let id = made["operationId"].as_str().unwrap();
    let record = api.get(&format!("/control/v1/companies/acme/operations/{id}")).await;
    let page = visitor.page(&format!("/c/acme/operations/{id}")).await;
    assert!(!page.contains("<script>alert"), "{page}");
    assert!(page.contains("captured content with extracts: 0 records written"), "{page}");
    assert!(page.contains("href=\"https://paperclip.example/issues/PAP%207\""), "{page}");
    assert!(page.contains("href=\"https://paperclip.example/acme/runs/r%201\""), "{page}");
    let event =
        record["costEventIds"][0].as_str().unwrap_or_else(|| panic!("no cost event: {record}"));
    assert!(page.contains(&format!("data-cost-event=\"{event}\"")), "{page}");
    assert!(
        page.contains("class=\"waterfall\"")
            && page.contains("<span class=\"what\">Provider</span>"),
        "{page}"
    );
    assert!(
        page.contains("id=\"request\"") && page.contains("metered 12.5"),
        "the snapshot: {page}"
    );
    assert!(page.contains(&format!(
        "&quot;principal&quot;: &quot;{}&quot;",
        record["principal"].as_str().unwrap()
    )));

    let written = capture(&api, "kept", "ada").await;
    let handle = written["records"][0]["providerRecordId"].as_str().unwrap();
    let page = visitor
        .page(&format!("/c/acme/operations/{}", written["operationId"].as_str().unwrap()))
        .await;
    assert!(page.contains("Agent ada captured content with extracts: 1 record written"), "{page}");
    assert!(page.contains("href=\"/c/acme/records/extracts/") && page.contains(handle), "{page}");

    let left = capture(&api, "job slices 3", "ada").await;
    let page = visitor
        .page(&format!("/c/acme/operations/{}", left["operationId"].as_str().unwrap()))
        .await;
    let job = between(&page, "href=\"/c/acme/jobs/", "\"");
    assert_eq!(visitor.get(&format!("/c/acme/jobs/{job}")).await.status, 200);

    let body = json!({"scope": {"companyId": "acme"}, "query": "x", "bindingKey": "nothing"});
    let refused = api.post("/runtime/v1/companies/acme/query", &body).await;
    assert!(refused.status >= 400);
    let page = visitor.page("/c/acme/operations?outcome=refused").await;
    let page = visitor
        .page(&format!("/c/acme/operations/{}", between(&page, "<tr data-key=\"", "\"")))
        .await;
    assert!(page.contains("the host refused it before the provider was called"), "{page}");
    let code = between(&page, "data-code=\"", "\"");
    assert!(
        refused.text.contains(code) && page.contains("The provider was not called"),
        "{code}: {page}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_issue_without_a_known_page_is_no_link() {
    let (_host, api) = extracting().await;
    let made = capture(&api, "plain", "ada").await;
    let visitor = in_company(&api, "acme", "auditor").await;
    let page = visitor
        .page(&format!("/c/acme/operations/{}", made["operationId"].as_str().unwrap()))
        .await;
    assert!(page.contains("PAP 7") && !page.contains("noreferrer"), "{page}");
    assert!(!page.contains("id=\"request\""), "nothing is shown that was not kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_overview_says_what_needs_somebody() {
    let (host, api) = filled().await;
    std::fs::write(host.directory().join("plugins/broken.wasm"), b"no component").unwrap();
    host.service().control().scan_plugins().await;
    let (operator, admin) =
        (operator(&api).await, in_company(&api, "acme", "company_administrator").await);
    let page = admin.page("/c/acme").await;
    let attention = between(&page, "<section class=\"panel\" id=\"attention\"", "</section>");
    for found in ["reviews?status=pending", "hooks?status=dead", "jobs?status=failed"] {
        let link = format!("/c/acme/{found}");
        assert!(attention.contains(&format!("href=\"{link}\"")), "{found}: {attention}");
        assert!(rows(&admin.page(&link).await) > 0, "{found}");
    }
    assert!(
        !attention.contains("/plugins") && !page.contains("doctor=yes"),
        "the host is not a company's: {page}"
    );
    assert!(page.contains("data-active=\"careful\"") && page.contains("id=\"volume\""), "{page}");
    assert!(rows(between(&page, "id=\"latest\"", "</section>")) > 0);

    let page = operator.page("/c/acme").await;
    assert!(
        page.contains("href=\"/plugins#refused\"") && !page.contains("id=\"doctor\""),
        "{page}"
    );
    let page = operator.page("/c/acme?doctor=yes").await;
    assert!(between(&page, "id=\"doctor\"", "</section>").contains("operation log"), "{page}");
    assert!(!admin.page("/c/acme?doctor=yes").await.contains("id=\"doctor\""));

    api.put("/control/v1/companies/acme/budgets/month", &json!({"limitCents": 100})).await;
    api.make("fresh").await;
    let page = operator.page("/c/fresh").await;
    assert!(
        page.contains("memhost note --company fresh"),
        "an empty company teaches its first command: {page}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_told_that_something_changed_and_nothing_more() {
    let (host, api) = extracting().await;
    let (admin, auditor) = (
        in_company(&api, "acme", "company_administrator").await,
        in_company(&api, "acme", "auditor").await,
    );
    let page = admin.page("/c/acme/operations").await;
    assert!(
        page.contains("data-live-at=\"/c/acme/live?kinds=operations\"")
            && page.contains("id=\"rows\" data-live")
    );
    assert_eq!(admin.get("/c/acme/live?kinds=everything").await.status, 400);
    assert_eq!(
        admin.api.send(Method::Get, "/c/acme/live", None, &[]).await.status,
        303,
        "who is not signed in"
    );
    let follow = async |visitor: &Visitor, path| {
        visitor.api.stream(path, &[("cookie", &visitor.session)]).await
    };
    let mut mine = follow(&admin, "/c/acme/live?kinds=operations").await;
    let mut jobs = follow(&auditor, "/c/acme/live?kinds=jobs").await;
    api.capture("other", "theirs").await.fine();
    for agent in ["ada", "bo", "cy"] {
        capture(&api, "a secret", agent).await;
    }
    mine.read_until(Some("data: operations")).await;
    assert_eq!(jobs.text, "", "the captures left no job");
    api.capture("acme", "job slices 1").await.fine();
    jobs.read_until(Some("data: jobs")).await;
    // The streams end when the host stops.
    Arc::clone(host.service()).control().stop_following();
    mine.read_until(None).await;
    jobs.read_until(None).await;
    assert!(mine.headers["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    let told = mine.text.matches("event: changed").count();
    assert!((1..=4).contains(&told), "{}", mine.text);
    // The hexadecimal digits of an id may be a name.
    let lines = mine.text.lines().filter(|line| !line.starts_with("id:"));
    let said = lines.collect::<Vec<_>>().join("\n");
    assert!(said.contains("data: operations"), "{said}");
    assert!(!said.contains("secret") && !said.contains("ada"), "{said}");
    assert!(!jobs.text.contains("operations"), "{}", jobs.text);
}

/// Bodies of forms count with those of all other requests, once it is known who sends them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forms_are_in_the_sum_of_all_bodies() {
    let host = TestHost::new(&[])
        .await
        .unwrap()
        .surfaces(|surfaces| surfaces.connections.max_bodies_bytes = 1_000);
    let api = Api::new(&host);
    let visitor = operator(&api).await;
    let body = encode(&[("csrf", &visitor.csrf), ("text", &"x".repeat(2_000))]);
    let send = async |cookie: &str| {
        visitor
            .api
            .with("nobody's")
            .send(Method::Post, "/c/acme/new-record", Some(body.clone()), &[("cookie", cookie)])
            .await
    };
    let refused = send(&visitor.session).await;
    assert!(
        refused.status == 503 && refused.text.contains("max_bodies_bytes"),
        "{} {}",
        refused.status,
        refused.text
    );
    assert_eq!(
        send("memhost_session=guessed").await.status,
        303,
        "who may not send it is not counted"
    );
}
