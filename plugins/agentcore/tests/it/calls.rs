//! What the recorded exchanges do not show: errors, prices, what does not fit.

use memhost_sdk::testing::http::{Answer, sent, serve};
use memhost_sdk::testing::{capture, list, query, reported, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Erasure, Extraction, Health, Provider};
use serde_json::{Value, json};

use super::open;

#[test]
fn errors_say_what_to_do() {
    for (status, said) in [
        (403, "Unauthorized"),
        (429, "RateLimited"),
        (402, "QuotaExceeded"),
        (400, "InvalidRequest"),
    ] {
        serve(move |_| Ok(Answer::json(status, json!({"message": "No."}))));
        let error = format!("{:?}", open(json!({})).check_health().unwrap_err());
        assert!(error.contains(said) && error.contains("No."), "{error}");
    }
    assert_eq!(sent()[0].header("authorization"), Some("{{sigv4:AWS_KEY}}"));
}

#[test]
fn an_answer_that_is_no_object_is_an_error() {
    for answer in [json!([1]), json!(7), json!({"memoryRecordSummaries": 7})] {
        serve(move |_| Ok(Answer::json(200, answer.clone())));
        let (listed, found) =
            (open(json!({})).list_records(list(None, 3)), open(json!({})).query(query("tea")));
        for error in [listed.unwrap_err(), found.unwrap_err()] {
            assert!(matches!(error, Error::Internal(_)), "{error:?}");
        }
    }
}

#[test]
fn a_batch_that_failed_is_no_success() {
    let failed = json!({
        "memoryRecordId": "", "status": "FAILED", "errorCode": 402,
        "errorMessage": "Too many records",
    });
    serve(move |_| {
        Ok(Answer::json(201, json!({"successfulRecords": [], "failedRecords": [failed]})))
    });
    let error = open(json!({})).capture(capture("op", "text")).unwrap_err();
    assert!(
        matches!(&error, Error::QuotaExceeded(message) if message.contains("Too many records")),
        "{error:?}"
    );
}

#[test]
fn what_agentcore_does_not_take_is_refused_before_anything_is_sent() {
    serve(|sent| panic!("{sent:?}"));
    let mut provider = open(json!({}));
    let long = RecordWrite { text: "é".repeat(16_001), ..RecordWrite::default() };
    let wide = RecordWrite {
        metadata: Some(json!({"a": "x".repeat(3_000)}).to_string()),
        text: "a".to_owned(),
        ..RecordWrite::default()
    };
    let named =
        RecordWrite { id: Some("é".repeat(60)), text: "a".to_owned(), ..RecordWrite::default() };
    for (record, field) in
        [(long, "records.1.text"), (wide, "records.1.metadata"), (named, "records.1.id")]
    {
        let mut request = upsert("op", &["fine"]);
        request.records.push(record);
        match provider.upsert_records(request).unwrap_err() {
            Error::InvalidRequest(error) => assert_eq!(error.field.as_deref(), Some(field)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn searches_are_charged_and_other_companies_are_left_out() {
    let record = |id: &str, namespace: &str| {
        json!({
            "memoryRecordId": id, "content": {"text": "gate"}, "memoryStrategyId": "s",
            "createdAt": 1.0, "score": 0.5, "namespaces": [namespace],
        })
    };
    let all = json!([
        record("a", "/memhost/company/-/-/-/facts"),
        record("b", "/memhost/other/-/-/-/facts"),
        record("c", "/facts"),
        record("d", "/memhost/company/someone/-/-/facts")
    ]);
    serve(move |_| Ok(Answer::json(200, json!({"memoryRecordSummaries": all}))));
    let found = open(json!({"searchMicrocents": 7})).query(query("gate")).unwrap().snippets;
    assert_eq!(found.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(found[0].created_at.as_deref(), Some("1970-01-01T00:00:01Z"));
    assert_eq!(reported()[0].cost_microcents, Some(7));
}

#[test]
fn an_event_is_charged_as_what_is_added() {
    let event = json!({"event": {"eventId": "1#a", "eventTimestamp": 1.0}});
    serve(move |_| Ok(Answer::json(201, event.clone())));
    open(json!({"extract": "always", "addMicrocents": 5})).capture(capture("op", "text")).unwrap();
    assert_eq!(reported().iter().map(|usage| usage.cost_microcents).collect::<Vec<_>>(), [Some(5)]);
}

#[test]
fn a_list_of_more_pages_than_one_call_reads_says_that_it_cannot_go_on() {
    let pages = |count: usize| {
        let mut page = 0;
        serve(move |_| {
            page += 1;
            let record = json!({
                "memoryRecordId": format!("{page:02}"), "content": {"text": "gate"},
                "createdAt": 1.0, "namespaces": ["/memhost/company/-/-/-/facts"],
            });
            let next = if page < count { json!("more") } else { Value::Null };
            Ok(Answer::json(200, json!({"memoryRecordSummaries": [record], "nextToken": next})))
        });
        let page = open(json!({})).list_records(list(None, 100)).unwrap();
        (page.items.len(), page.continuation)
    };
    assert_eq!(pages(20), (20, Continuation::End));
    assert_eq!(pages(21), (20, Continuation::CannotContinue));
}

#[test]
fn a_capture_that_nothing_came_of_is_done_in_time() {
    serve(|sent| {
        Ok(match (sent.method, sent.path.rsplit('/').next().unwrap()) {
            ("POST", "extractionJobs") => Answer::json(200, json!({"jobs": []})),
            ("POST", "memoryRecords") => Answer::json(200, json!({"memoryRecordSummaries": []})),
            _ => Answer::json(201, json!({"event": {"eventId": "1#a", "eventTimestamp": 1.0}})),
        })
    });
    for (settle, status) in [(600, JobStatus::Running), (0, JobStatus::Succeeded)] {
        let mut provider = open(json!({"extract": "always", "settleSeconds": settle}));
        let job = provider.capture(capture("op", "text")).unwrap().jobs.remove(0);
        let found = provider.get_job(job.provider_job_id).unwrap().unwrap();
        assert_eq!((found.job.status, found.records.len()), (status, 0));
    }
}

#[test]
fn a_large_company_is_deleted_in_more_than_one_call() {
    serve(|sent| {
        Ok(match (sent.method, sent.path.rsplit('/').next().unwrap()) {
            ("POST", "actors") => {
                Answer::json(200, json!({"actorSummaries": [{"actorId": "company/-/-/-"}]}))
            }
            ("POST", "sessions") => {
                Answer::json(200, json!({"sessionSummaries": [{"sessionId": "s"}]}))
            }
            ("POST", _) => Answer::json(
                200,
                json!({
                    "events": (0..100)
                        .map(|n| json!({"eventId": format!("{n}#a")})).collect::<Vec<_>>(),
                }),
            ),
            _ => Answer::json(200, json!({"eventId": "1#a"})),
        })
    });
    let request =
        ForgetScopeRequest { operation_id: "op".to_owned(), scope: Scope::company("company") };
    assert!(matches!(open(json!({})).forget_scope(request), Err(Error::Unavailable(_))));
    assert!(sent().len() <= 60, "{}", sent().len());
}
