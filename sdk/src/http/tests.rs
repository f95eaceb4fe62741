//! The client against a server in memory.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, Error, Failure, Phase, filled, segment};
use crate::testing::http::{Answer, sent, serve, waited};
use crate::testing::{reset, set_remaining};
use crate::types;

fn client() -> Client {
    reset(json!({}));
    Client::new("https://api.example.com/v1/").unwrap()
}

/// Serves these answers one after the other, the last one for good.
fn answers(all: Vec<Result<Answer, Failure>>) {
    let next = Rc::new(Cell::new(0));
    serve(move |_| {
        let answer = all[next.get().min(all.len() - 1)].clone();
        next.set(next.get() + 1);
        answer
    });
}

fn status(status: u16, retry_after: Option<&str>) -> Answer {
    let headers =
        retry_after.map(|after| ("Retry-After".to_owned(), after.to_owned())).into_iter().collect();
    Answer { headers, ..Answer::json(status, json!({"detail": "too much"})) }
}

#[test]
fn a_request_is_put_together() {
    let client = client().header("x-app", "1").secret("x-api-key", "", "KEY");
    serve(|_| Ok(Answer::json(200, json!({"ok": true}))));
    let path = format!("/notes/{}", segment("a/../b ü"));
    let answer: Value = client
        .post(&path)
        .query("page", &2)
        .query("q", "a&b=c")
        .json(&json!({"n": 1}))
        .answer()
        .unwrap();
    assert_eq!(answer, json!({"ok": true}));
    let sent = sent().remove(0);
    assert_eq!((sent.method, sent.origin.as_str()), ("POST", "https://api.example.com"));
    assert_eq!(
        (sent.path.as_str(), sent.query.as_str()),
        ("/v1/notes/a%2F..%2Fb%20%C3%BC", "page=2&q=a%26b%3Dc")
    );
    assert_eq!(
        (sent.header("x-api-key"), sent.header("x-app")),
        (Some("{{secret:KEY}}"), Some("1"))
    );
    assert_eq!(
        (sent.header("content-type"), &sent.body),
        (Some("application/json"), &json!({"n": 1}))
    );
    assert_eq!(sent.timeout, Duration::from_secs(24), "a share of what is left of the call");
    assert_eq!((segment(".."), segment("")), ("%2E%2E".to_owned(), String::new()));
}

#[test]
fn a_wrong_address_is_refused() {
    for url in [
        "",
        "api.example.com",
        "ftp://a",
        "https://",
        "https://a@b",
        "https://a?b",
        "https://a/#b",
        "http://a b",
    ] {
        assert!(Client::new(url).is_err(), "{url:?}");
    }
    for url in ["https://a", "http://127.0.0.1:8000", "http://[::1]:80/v1/"] {
        assert!(Client::new(url).is_ok(), "{url:?}");
    }
}

#[test]
fn what_reads_is_tried_again_and_what_writes_is_not() {
    let broken = || Err(Failure::MaybeSent(Phase::Response, "reset".to_owned()));
    let client = client();
    answers(vec![broken(), Ok(status(503, None)), Ok(Answer::json(200, json!(1)))]);
    assert_eq!(client.get("/a").answer::<u8>(), Ok(1));
    assert_eq!(waited(), [Duration::from_millis(200), Duration::from_millis(400)]);
    answers(vec![broken(), Ok(Answer::json(200, json!(1)))]);
    let error = client.post("/a").answer::<u8>().unwrap_err();
    assert!(error.may_have_acted() && sent().len() == 1, "{error}");
    assert_eq!(client.post("/a").reads().answer::<u8>(), Ok(1), "the second answer");
    answers(vec![broken()]);
    client.get("/a").send().unwrap_err();
    assert_eq!(sent().len(), 3);
    answers(vec![Ok(status(404, None))]);
    client.get("/a").send().unwrap_err();
    assert_eq!(sent().len(), 1, "trying again does not help");
}

#[test]
fn retry_after_is_waited_for_if_it_is_short() {
    let client = client();
    answers(vec![Ok(status(429, Some("1"))), Ok(Answer::json(200, json!(1)))]);
    assert_eq!(client.get("/a").answer::<u8>(), Ok(1));
    assert_eq!(waited(), [Duration::from_secs(1)]);
    answers(vec![Ok(status(429, Some("60")))]);
    let error: types::Error = client.get("/a").send().unwrap_err().into();
    assert_eq!(sent().len(), 1);
    assert!(
        matches!(&error, types::Error::RateLimited(later) if later.retry_after_ms == Some(60_000)),
        "{error:?}"
    );
    set_remaining(Duration::from_millis(300));
    answers(vec![Ok(status(503, None))]);
    client.get("/a").send().unwrap_err();
    assert_eq!(sent().len(), 1, "there is no time to wait");
}

#[test]
fn every_failure_becomes_the_error_to_react_to() {
    let client = client();
    let failures = [
        (Failure::Denied("no grant".into()), false, "Unauthorized"),
        (Failure::NotSent("refused".into()), false, "Unavailable"),
        (Failure::MaybeSent(Phase::Body, "cut".into()), true, "Unavailable"),
        (Failure::Limit("the limit `outgoingRequests` of 64".into()), false, "Internal"),
        (
            Failure::Limit("the limit `outgoingRequestsPerMinute` of 64".into()),
            false,
            "RateLimited",
        ),
    ];
    for (failure, acted, kind) in failures {
        answers(vec![Err(failure)]);
        let error = client.put("/a").send().unwrap_err();
        assert_eq!(error.may_have_acted(), acted, "{error}");
        assert!(format!("{:?}", types::Error::from(error)).contains(kind), "{kind}");
    }
    for (code, acted, kind) in [
        (302, false, "Internal"),
        (400, false, "InvalidRequest"),
        (401, false, "Unauthorized"),
        (404, false, "NotFound"),
        (422, false, "InvalidRequest"),
        (429, false, "RateLimited"),
        (500, true, "Unavailable"),
        (504, true, "Unavailable"),
    ] {
        answers(vec![Ok(status(code, None))]);
        let error = client.delete("/a").send().unwrap_err();
        assert_eq!(error.may_have_acted(), acted, "{error}");
        assert!(error.to_string().ends_with("too much"), "{error}");
        assert!(format!("{:?}", types::Error::from(error)).contains(kind), "{code}");
    }
}

#[test]
fn an_answer_of_another_shape_may_have_been_done() {
    let client = client();
    serve(|_| Ok(Answer { status: 200, headers: Vec::new(), body: b"<html>".to_vec() }));
    let error = client.post("/a").answer::<Value>().unwrap_err();
    assert!(matches!(error, Error::Answer { .. }) && error.may_have_acted(), "{error}");
    serve(|_| Ok(Answer { status: 204, headers: Vec::new(), body: Vec::new() }));
    assert_eq!(client.post("/a").answer::<Value>(), Ok(Value::Null));
    serve(|_| Ok(Answer::json(200, Value::Null)));
    assert_eq!(client.get("/a").answer_if_found::<u8>(), Ok(None));
    answers(vec![Ok(status(404, None))]);
    assert_eq!(client.get("/a").answer_if_found::<u8>(), Ok(None));
}

#[test]
fn a_part_of_an_answer_must_be_there_unless_nothing_is() {
    let client = client();
    let body = json!({"found": {"ids": [1, 2]}, "none": null});
    serve(move |_| Ok(Answer::json(200, body.clone())));
    assert_eq!(client.get("/a").at("/found/ids/1").answer::<u8>().unwrap(), 2);
    assert_eq!(client.get("/a").at("/none").answer_if_found::<u8>().unwrap(), None);
    for wrong in ["/lost", "/found"] {
        let refused = client.get("/a").at(wrong).answer_if_found::<u8>().unwrap_err();
        assert!(
            matches!(&refused, Error::Answer { request, .. } if request == "GET /v1/a"),
            "{refused:?}"
        );
    }
    answers(vec![Ok(status(404, None)), Ok(Answer::json(200, Value::Null))]);
    for _ in 0..2 {
        assert_eq!(client.get("/a").at("/found").answer_if_found::<u8>().unwrap(), None);
    }
}

#[test]
fn an_answer_about_another_thing_is_an_error() {
    let client = client();
    answers(vec![
        Ok(Answer::json(200, json!({"id": "a"}))),
        Ok(Answer::json(200, json!({"id": "b"}))),
        Ok(status(404, None)),
    ]);
    let ask = || client.get("/notes/a").answer_about(|note: &Value| note["id"] == "a");
    assert_eq!(ask().unwrap().unwrap()["id"], "a");
    assert!(matches!(ask(), Err(Error::Answer { .. })));
    assert_eq!(ask().unwrap(), None);
}

#[test]
fn a_body_has_what_is_filled() {
    assert_eq!(
        filled(json!({"a": null, "b": {"c": null}, "d": 0})),
        json!({"b": {"c": null}, "d": 0})
    );
    assert_eq!(filled(json!([null])), json!([null]));
}

#[test]
fn what_the_provider_refuses_was_not_done() {
    assert!(!Error::from(types::Error::unsupported("no")).may_have_acted());
    assert!(!Error::from(types::Error::invalid("text", "is too long")).may_have_acted());
    assert!(Error::from(types::Error::internal("storage")).may_have_acted());
}

#[test]
fn an_error_behind_a_write_says_that_something_was_done() {
    let status = |status| Error::Status {
        request: "GET /a".into(),
        status,
        message: "no".into(),
        retry_after: None,
    };
    let denied = Error::Denied { request: "GET /a".into(), reason: "no".into() };
    let not_sent = Error::NotSent { request: "GET /a".into(), reason: "no".into() };
    for error in [
        status(429),
        status(400),
        status(404),
        status(500),
        denied,
        not_sent,
        types::Error::unsupported("no").into(),
    ] {
        assert!(error.after_write().may_have_acted());
    }
    assert!(
        matches!(types::Error::from(status(429).after_write()), types::Error::RateLimited(_)),
        "it is still what it was"
    );
    assert!(
        matches!(types::Error::from(status(400).after_write()), types::Error::Internal(_)),
        "the host's request was not wrong"
    );
}
