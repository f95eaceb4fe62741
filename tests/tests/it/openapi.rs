//! The OpenAPI document: it equals the reviewed snapshot, and has every route with its roles.

use std::collections::BTreeMap;
use std::fs;

use memhost_server::{Method, openapi};
use memhost_tests::{TestHost, repository};
use serde_json::Value;

use super::access::{COMPANY, HOST};
use super::support::Api;

/// Every operation of the document by method and path.
fn operations(document: &Value) -> BTreeMap<(String, String), Value> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        item.as_object()
            .unwrap()
            .iter()
            .map(move |(method, operation)| ((method.clone(), path.clone()), operation.clone()))
    });
    operations.collect()
}

/// `UPDATE_OPENAPI=1` writes the file, so that a change of the API is seen in review.
#[test]
fn the_document_equals_the_reviewed_snapshot() {
    let path = repository().join("tests/tests/it/snapshots/openapi.json");
    let found = format!("{}\n", serde_json::to_string_pretty(&openapi()).unwrap());
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        fs::write(&path, &found).unwrap();
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    let differs = known.lines().zip(found.lines()).position(|(known, found)| known != found);
    let differs =
        differs.or((known != found).then_some(known.lines().count().min(found.lines().count())));
    if let Some(line) = differs {
        let [known, found] =
            [&known, &found].map(|text| text.lines().nth(line).unwrap_or("(its end)"));
        panic!(
            "the document differs from {} at line {}:\n  was {known}\n  is  {found}\nrun the test \
             with UPDATE_OPENAPI=1 \
             and look at what changed",
            path.display(),
            line + 1
        );
    }
}

#[test]
fn every_route_is_in_the_document_with_its_roles() {
    let document = openapi();
    let mut documented = operations(&document);
    let roles = |operation: &Value| operation["x-roles"].as_array().map_or(0, Vec::len);
    let mut wrong = Vec::new();
    let mut look = |method: &Method, path: &str, allowed: &str| {
        let Some(operation) =
            documented.remove(&(format!("{method:?}").to_lowercase(), path.to_owned()))
        else {
            return wrong.push(format!("{method:?} {path} is not in the document"));
        };
        for (role, may) in
            ["company_administrator", "agent", "auditor"].into_iter().zip(allowed.chars())
        {
            let says = operation["x-roles"]
                .as_array()
                .is_some_and(|roles| roles.iter().any(|one| one == role));
            if says != (may == '+') {
                wrong.push(format!("{method:?} {path} says that {role} is allowed: {says}"));
            }
        }
        if roles(&operation) == 0 {
            wrong.push(format!("{method:?} {path} allows no role"));
        }
    };
    COMPANY.iter().for_each(|(method, path, allowed)| look(method, path, allowed));
    HOST.iter().for_each(|(method, path)| look(method, path, "---"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let open: Vec<_> = documented.keys().map(|(method, path)| format!("{method} {path}")).collect();
    assert_eq!(
        open,
        ["get /healthz", "get /info", "get /openapi.json", "get /readyz"],
        "routes that the table does not have"
    );
    assert!(documented.values().all(|operation| operation["security"] == serde_json::json!([])));
}

#[test]
fn every_operation_has_a_description() {
    let document = openapi();
    let mut ids = BTreeMap::new();
    for ((method, path), operation) in operations(&document) {
        let text = |name: &str| operation[name].as_str().unwrap_or_default().to_owned();
        let id = text("operationId");
        assert!(
            id.starts_with(|c: char| c.is_ascii_lowercase())
                && id.bytes().all(|b| b.is_ascii_alphanumeric()),
            "{id}"
        );
        assert!(
            !text("summary").is_empty()
                && operation["tags"].as_array().is_some_and(|tags| tags.len() == 1),
            "{id}"
        );
        let is_known = |tag: &Value| {
            document["tags"].as_array().unwrap().iter().any(|known| known["name"] == *tag)
        };
        assert!(
            is_known(&operation["tags"][0]),
            "{id} has a tag that the document does not explain"
        );
        assert_eq!(
            ids.insert(id.clone(), (method, path.clone())),
            None,
            "two operations are called {id}"
        );
        let in_path = path.matches('{').count();
        let parameters = operation["parameters"].as_array().unwrap();
        assert_eq!(parameters.iter().filter(|one| one["in"] == "path").count(), in_path, "{id}");
        let answers = operation["responses"].as_object().unwrap();
        let good = answers.iter().filter(|(status, _)| status.starts_with('2'));
        let described =
            good.clone().all(|(status, answer)| status == "204" || answer.get("content").is_some());
        assert!(good.count() > 0 && described, "{id} does not say what it answers");
    }
    // Every reference leads somewhere.
    let text = document.to_string();
    for rest in text.split("\"$ref\":\"#").skip(1) {
        let pointer = rest.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "nothing is at {pointer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_needs_no_token_and_has_an_entity_tag() {
    let host = TestHost::new(&[]).await.unwrap();
    let nobody = Api::new(&host).with("");
    let answer = nobody.send(Method::Get, "/openapi.json", None, &[]).await;
    assert_eq!((answer.status, &answer.json), (200, &openapi()));
    assert_eq!(answer.headers["content-type"], "application/json");
    let tag = answer.headers["etag"].to_str().unwrap().to_owned();
    for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}")] {
        let again =
            nobody.send(Method::Get, "/openapi.json", None, &[("if-none-match", &known)]).await;
        assert_eq!((again.status, again.text.as_str()), (304, ""), "{known}");
    }
    let other =
        nobody.send(Method::Get, "/openapi.json", None, &[("if-none-match", "\"other\"")]).await;
    assert_eq!(other.status, 200);
}

/// The reference page shows the whole document, and loads nothing but its own stylesheet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_shows_every_operation_type_and_code() {
    let host = TestHost::new(&[]).await.unwrap();
    let nobody = Api::new(&host).with("");
    let page = nobody.send(Method::Get, "/reference", None, &[]).await;
    assert_eq!(
        (page.status, page.headers["content-type"].to_str().unwrap()),
        (200, "text/html; charset=utf-8")
    );
    assert!(
        page.headers["content-security-policy"]
            .to_str()
            .unwrap()
            .starts_with("default-src 'none'; style-src 'self'")
    );
    let document = openapi();
    let ids = operations(&document)
        .into_values()
        .map(|operation| operation["operationId"].as_str().unwrap().to_owned());
    let types = document["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
        .map(|name| format!("type-{name}"));
    let codes = document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]
        .as_array()
        .unwrap();
    let codes = codes.iter().map(|code| format!("problem-{}", code.as_str().unwrap()));
    let missing: Vec<_> = ids
        .chain(types)
        .chain(codes)
        .filter(|id| !page.text.contains(&format!("id=\"{id}\"")))
        .collect();
    assert!(missing.is_empty(), "the page does not show {missing:?}");
    // Every anchor exists, nothing is loaded from elsewhere, and there is no script.
    for rest in page.text.split("href=\"").skip(1) {
        let target = rest.split('"').next().unwrap();
        let is_there =
            target.strip_prefix('#').is_none_or(|id| page.text.contains(&format!("id=\"{id}\"")));
        assert!(is_there && !target.contains("://"), "{target}");
    }
    assert!(
        !page.text.contains("<script")
            && !page.text.contains("style=")
            && !page.text.contains(" src=")
    );
    let style = nobody.send(Method::Get, "/reference.css", None, &[]).await;
    assert_eq!(
        (style.status, style.headers["content-type"].to_str().unwrap()),
        (200, "text/css; charset=utf-8")
    );
    assert!(!style.text.contains("url(") && !style.text.contains("@import"));
}

/// Every code is explained once, in the answer of its status.
#[test]
fn every_code_of_a_problem_is_explained_once() {
    let document = openapi();
    let known = document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]
        .as_array()
        .unwrap();
    let answers = document["components"]["responses"].as_object().unwrap().values();
    let mut explained: Vec<&Value> = answers
        .flat_map(|answer| answer["x-codes"].as_array().into_iter().flatten())
        .map(|code| &code["code"])
        .collect();
    assert!(known.len() > 40 && explained.len() == known.len(), "{explained:?}");
    explained.retain(|code| !known.contains(code));
    assert_eq!(explained, Vec::<&Value>::new());
}

/// Problems come from the types of a handler: its extractors, its answer and its error.
#[test]
fn problems_follow_from_the_types_of_a_handler() {
    let document = openapi();
    let operations = operations(&document);
    let statuses = |method: &str, path: &str| {
        let operation = &operations[&(method.to_owned(), path.to_owned())];
        let statuses = operation["responses"].as_object().unwrap().keys();
        statuses
            .filter(|status| status.starts_with(['4', '5']))
            .cloned()
            .collect::<Vec<_>>()
            .join(" ")
    };
    // 400: a header that says for whom an integration acts may be wrong.
    assert_eq!(statuses("get", "/control/v1/companies"), "400 401 403 500 503");
    assert_eq!(statuses("get", "/control/v1/tombstones/{company}"), "400 401 403 404 500 503");
    let bindings = "/control/v1/companies/{company}/bindings";
    assert_eq!(statuses("get", bindings), "400 401 403 404 410 500 503");
    assert_eq!(statuses("post", bindings), "400 401 403 404 409 410 413 415 422 500 502 503 507");
    let query = "/runtime/v1/companies/{company}/query";
    assert_eq!(
        statuses("post", query),
        "400 401 402 403 404 409 410 413 415 422 429 500 502 503 504 507"
    );
}
