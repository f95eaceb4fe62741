//! What the recorded exchanges do not show: errors, prices, names.

use memhost_sdk::testing::http::{Answer, sent, serve};
use memhost_sdk::testing::{capture, query, reported, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Erasure, Extraction, Health, Profile, Provider};
use serde_json::{Value, json};

use super::open;

#[test]
fn errors_say_what_to_do() {
    for (status, said) in
        [(401, "Unauthorized"), (429, "RateLimited"), (500, "Unavailable"), (400, "InvalidRequest")]
    {
        serve(move |_| Ok(Answer::json(status, json!({"error": "Bad", "details": "No."}))));
        let error = format!("{:?}", open(json!({})).check_health().unwrap_err());
        assert!(error.contains(said) && error.contains("No."), "{error}");
    }
    serve(|_| Ok(Answer::json(200, json!({"status": "ok"}))));
    assert!(matches!(open(json!({})).check_health(), Err(Error::Internal(_))));
}

#[test]
fn a_container_that_is_not_there_is_empty() {
    serve(|_| {
        Ok(Answer::json(
            404,
            json!({"error": "Not Found", "details": "Space not found for given containerTag"}),
        ))
    });
    let mut provider = open(json!({}));
    assert!(provider.query(query("gate")).unwrap().snippets.is_empty());
    assert!(provider.query(query("")).unwrap().snippets.is_empty());
    assert!(provider.get_record("abc".to_owned(), scope()).unwrap().snippet.is_none());
    assert_eq!(provider.get_profile(scope()).unwrap().summary, None);
    let request =
        ForgetScopeRequest { operation_id: "op".to_owned(), scope: Scope::company("company") };
    assert!(provider.forget_scope(request.clone()).is_ok());
    assert!(matches!(
        provider.forget_scope(ForgetScopeRequest { scope: scope(), ..request }),
        Err(Error::Unsupported(_))
    ));
}

#[test]
fn a_document_that_is_gone_has_failed() {
    let mut asked = 0;
    serve(move |sent| {
        asked += usize::from(sent.method == "GET");
        Ok(match asked {
            0 | 1 => {
                Answer::json(200, json!({"id": "doc", "status": "queued", "customId": "op.3a1"}))
            }
            _ => Answer::json(404, json!({"error": "Document not found"})),
        })
    });
    let mut provider = open(json!({"extract": "always"}));
    let job = provider.capture(capture("op:1", "text")).unwrap().jobs.remove(0);
    assert_eq!(sent()[0].body["customId"], "op.3a1");
    assert_eq!(
        provider.get_job(job.provider_job_id).unwrap().unwrap().job.status,
        JobStatus::Failed
    );
    assert!(provider.get_job("nobody".to_owned()).unwrap().is_none());
}

#[test]
fn a_text_that_is_too_long_is_refused_before_anything_is_sent() {
    serve(|sent| panic!("{sent:?}"));
    let long = "é".repeat(10_001);
    match open(json!({})).upsert_records(upsert("op", &["fine", &long])).unwrap_err() {
        Error::InvalidRequest(error) => assert_eq!(error.field.as_deref(), Some("records.1.text")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_document_under_another_id_is_not_told_as_captured() {
    serve(|_| Ok(Answer::json(200, json!({"id": "doc", "status": "queued", "customId": "other"}))));
    assert!(open(json!({"extract": "always"})).capture(capture("op", "text")).is_err());
}

#[test]
fn the_container_is_named_after_the_company_and_only_recalled_text_is_nothing() {
    serve(|_| Ok(Answer::json(200, json!({"results": []}))));
    let mut provider: memhost_supermemory::Supermemory = memhost_sdk::testing::open(
        json!({"url": "https://api.supermemory.ai", "searchMicrocents": 7}),
    )
    .unwrap();
    provider.query(QueryRequest { scope: Scope::company("a.b"), ..query("gate") }).unwrap();
    let sent = sent();
    assert_eq!(sent[0].body["containerTag"], "memhost-a_2eb");
    assert_eq!(sent[0].header("authorization"), Some("Bearer {{secret:SUPERMEMORY_API_KEY}}"));
    assert_eq!(reported()[0].cost_microcents, Some(7));
    let recalled = capture("op", "<memhost-recall>old</memhost-recall>");
    assert!(provider.capture(recalled).unwrap().records.is_empty());
}

#[test]
fn a_memory_of_a_document_that_is_not_known_belongs_to_nobody() {
    let entry = json!({
        "id": "abc", "memory": "Likes tea", "version": 1, "isLatest": true, "isForgotten": false,
        "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-02T00:00:00Z",
        "metadata": {"a": 1}, "documentIds": ["other"],
    });
    let page: Value =
        json!({"memoryEntries": [entry], "pagination": {"currentPage": 1, "totalPages": 1}});
    serve(move |sent| match sent.body["filters"].is_null() {
        true => Ok(Answer::json(200, page.clone())),
        false => {
            Ok(Answer::json(200, json!({"memoryEntries": [], "pagination": page["pagination"]})))
        }
    });
    let found = open(json!({})).get_record("abc".to_owned(), scope()).unwrap().snippet.unwrap();
    assert_eq!((found.metadata.as_deref(), found.scope), (Some(r#"{"a":1}"#), None));
    assert_eq!(found.created_at.as_deref(), Some("2026-01-01T00:00:00Z"));
}
