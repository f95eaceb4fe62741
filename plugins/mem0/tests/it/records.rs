//! What each call does, at both APIs.

use std::time::Duration;

use memhost_sdk::testing::http::sent;
use memhost_sdk::testing::{self, capture, forget, list, query, reported, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Correction, Erasure, Extraction, Health, Provider};
use serde_json::json;

use super::{open, server};

const BOTH: [&str; 2] = ["self-hosted", "hosted"];

fn agent(name: &str) -> Scope {
    Scope { agent_id: Some(name.to_owned()), ..Scope::company("company") }
}

#[test]
fn a_record_comes_back_as_it_was_written() {
    for api in BOTH {
        server::start();
        let mut mem0 = open(api, json!({}));
        let record = RecordWrite {
            text: "The gate is green".to_owned(),
            summary: Some("gate".to_owned()),
            metadata: Some(r#"{"topic":"gate","role":"mine","n":1.50}"#.to_owned()),
            created_at: Some("2026-01-01T00:00:00Z".to_owned()),
            expires_at: Some("2030-01-01T12:00:00Z".to_owned()),
            ..RecordWrite::default()
        };
        let request = UpsertRequest {
            source: Some(testing::source()),
            records: vec![record.clone()],
            ..upsert("op", &[])
        };
        let id = mem0.upsert_records(request).unwrap().records.remove(0);
        let found = mem0.get_record(id.clone(), scope()).unwrap().snippet.unwrap();
        assert_eq!(
            (found.id.as_str(), &found.text, &found.summary),
            (id.as_str(), &record.text, &record.summary)
        );
        assert_eq!((&found.metadata, &found.created_at), (&record.metadata, &record.created_at));
        assert_eq!(
            (found.expires_at, found.source, found.scope),
            (record.expires_at, Some(testing::source()), Some(scope()))
        );
        assert_eq!(found.updated_at.as_deref(), Some("2026-11-23T13:57:02.065615Z"));
        let hit = mem0.query(query("gate")).unwrap().snippets.remove(0);
        assert_eq!((hit.id, hit.score), (id, Score::Rank(1.0)));
        // The server's own member of this name is not overwritten.
        assert!(sent().iter().all(|sent| sent.body["metadata"]["role"].is_null()));
    }
}

#[test]
fn the_same_operation_makes_no_second_record() {
    for api in BOTH {
        let server = server::start();
        let mut mem0 = open(api, json!({}));
        let first = mem0.capture(capture("op", "one")).unwrap().records;
        assert_eq!(mem0.capture(capture("op", "one")).unwrap().records, first);
        assert_ne!(mem0.capture(capture("other", "one")).unwrap().records, first);
        assert_eq!(server.borrow().texts().len(), 2);
    }
}

#[test]
fn a_delivery_after_a_crash_finds_what_was_written_before() {
    for api in BOTH {
        let server = server::start();
        let mut mem0 = open(api, json!({}));
        let hook = HookContext {
            hook_kind: HookKind::ManualCapture,
            triggered_at: "2026-01-01T00:00:00Z".to_owned(),
            actor_agent_id: None,
            heartbeat_run_id: None,
        };
        let request = CaptureRequest { hook: Some(hook), ..capture("op", "one") };
        let first = mem0.capture(request.clone()).unwrap().records;
        testing::lose_storage();
        assert_eq!(mem0.capture(request).unwrap().records, first);
        assert_eq!(server.borrow().texts(), ["one"]);
    }
}

#[test]
fn partitions_are_separate() {
    for api in BOTH {
        server::start();
        let mut mem0 = open(api, json!({}));
        let id = mem0
            .capture(CaptureRequest { scope: agent("a"), ..capture("op", "of a") })
            .unwrap()
            .records
            .remove(0);
        mem0.capture(CaptureRequest {
            scope: Scope::company("company"),
            ..capture("op-2", "of all")
        })
        .unwrap();
        let texts = |mem0: &mut memhost_mem0::Mem0, scope: Scope| {
            let found = mem0
                .query(QueryRequest { scope: scope.clone(), ..query("of") })
                .unwrap()
                .snippets
                .len();
            let listed =
                mem0.list_records(ListRequest { scope, ..list(None, 10) }).unwrap().items.len();
            assert_eq!(found, listed);
            found
        };
        assert_eq!(
            [agent("a"), agent("b"), Scope::company("company")]
                .map(|scope| texts(&mut mem0, scope)),
            [2, 1, 2]
        );
        assert!(mem0.get_record(id.clone(), agent("b")).unwrap().snippet.is_none());
        let outcome = mem0.forget(forget(vec![id.clone()], agent("b"))).unwrap().outcomes.remove(0);
        assert_eq!(outcome.effect, ForgetEffect::NotFound);
        let foreign =
            RecordWrite { id: Some(id), text: "mine".to_owned(), ..RecordWrite::default() };
        let request =
            UpsertRequest { scope: agent("b"), records: vec![foreign], ..upsert("op-3", &[]) };
        assert!(matches!(mem0.upsert_records(request), Err(Error::InvalidRequest(_))));
    }
}

#[test]
fn a_few_records_of_an_agent_are_found_among_many_of_others() {
    server::start();
    let mut mem0 = open("self-hosted", json!({}));
    for n in 0..80 {
        mem0.capture(CaptureRequest {
            scope: agent("other"),
            ..capture(&format!("op-{n}"), "gate")
        })
        .unwrap();
    }
    mem0.capture(CaptureRequest { scope: agent("a"), ..capture("op", "gate") }).unwrap();
    let found =
        mem0.query(QueryRequest { scope: agent("a"), top_k: 3, ..query("gate") }).unwrap().snippets;
    assert_eq!(found.len(), 1);
}

#[test]
fn filters_are_sent_and_checked() {
    for api in BOTH {
        server::start();
        let mut mem0 = open(api, json!({}));
        let record = |topic: &str, n: u8| RecordWrite {
            text: topic.to_owned(),
            metadata: Some(json!({"topic": topic, "n": n}).to_string()),
            ..RecordWrite::default()
        };
        let records = vec![record("gate", 1), record("gate", 2), record("door", 1)];
        mem0.upsert_records(UpsertRequest { records, ..upsert("op", &[]) }).unwrap();
        let filter = Some(r#"{"topic":"gate","n":2}"#.to_owned());
        let found = mem0
            .query(QueryRequest { metadata_filter: filter.clone(), ..query("x") })
            .unwrap()
            .snippets;
        assert_eq!(found.len(), 1);
        let sent = sent().pop().unwrap().body["filters"].clone();
        let expected = match api {
            "hosted" => json!({"AND": [{"user_id": "u"}, {"metadata": {"topic": "gate"}}]}),
            _ => json!({"user_id": "u", "topic": "gate"}),
        };
        assert_eq!(sent, expected);
        assert_eq!(
            mem0.list_records(ListRequest { metadata_filter: filter, ..list(None, 9) })
                .unwrap()
                .items
                .len(),
            1
        );
    }
}

#[test]
fn a_given_id_is_one_record() {
    for api in BOTH {
        let server = server::start();
        let mut mem0 = open(api, json!({}));
        let write = |text: &str| UpsertRequest {
            records: vec![RecordWrite {
                id: Some("fact-1".to_owned()),
                text: text.to_owned(),
                ..RecordWrite::default()
            }],
            ..upsert(text, &[])
        };
        assert_eq!(mem0.upsert_records(write("one")).unwrap().records, ["fact-1"]);
        assert_eq!(mem0.upsert_records(write("two")).unwrap().records, ["fact-1"]);
        assert_eq!(server.borrow().texts(), ["two"]);
        assert_eq!(mem0.query(query("two")).unwrap().snippets[0].id, "fact-1");
        let patch =
            Patch::Replacement(RecordWrite { text: "three".to_owned(), ..RecordWrite::default() });
        let request = CorrectRequest {
            operation_id: "op".to_owned(),
            id: "fact-1".to_owned(),
            scope: scope(),
            patch,
        };
        assert_eq!(mem0.correct(request).unwrap().record_id, "fact-1");
        assert_eq!(
            mem0.get_record("fact-1".to_owned(), scope()).unwrap().snippet.unwrap().text,
            "three"
        );
        // What was stored is lost: the memory itself says which record it is.
        testing::lose_storage();
        assert_eq!(mem0.upsert_records(write("new")).unwrap().records, ["fact-1"]);
        assert_eq!(server.borrow().texts(), ["new"]);
        // Somebody deletes it at mem0.
        server.borrow_mut().memories.clear();
        assert_eq!(mem0.upsert_records(write("four")).unwrap().records, ["fact-1"]);
        assert_eq!(
            mem0.forget(forget(vec!["fact-1".to_owned()], scope())).unwrap().outcomes[0].effect,
            ForgetEffect::HistoryKept
        );
        assert!(mem0.get_record("fact-1".to_owned(), scope()).unwrap().snippet.is_none());
        assert_eq!(mem0.upsert_records(write("five")).unwrap().records, ["fact-1"]);
    }
}

#[test]
fn forgetting_says_whether_the_history_has_the_text() {
    for api in BOTH {
        let server = server::start();
        let mut mem0 = open(api, json!({}));
        for (keeps, effect) in [(true, ForgetEffect::HistoryKept), (false, ForgetEffect::Hard)] {
            server.borrow_mut().keeps_history = keeps;
            let id =
                mem0.capture(capture(&format!("op-{keeps}"), "one")).unwrap().records.remove(0);
            let all = vec![id.clone(), id, "nobody".to_owned()];
            let effects: Vec<_> = mem0
                .forget(forget(all, scope()))
                .unwrap()
                .outcomes
                .into_iter()
                .map(|outcome| outcome.effect)
                .collect();
            assert_eq!(effects, [effect, ForgetEffect::NotFound, ForgetEffect::NotFound]);
        }
    }
}

#[test]
fn a_memory_that_somebody_else_wrote_is_found() {
    let server = server::start();
    let mut mem0 = open("self-hosted", json!({}));
    for (id, user) in [
        ("00000000-0000-4000-8000-00000000000a", "u"),
        ("00000000-0000-4000-8000-00000000000b", "v"),
    ] {
        server.borrow_mut().memories.push(
            json!({"id": id, "memory": "Likes tea", "user_id": user, "metadata": {"a": 1},
            "created_at": "2026-01-01T00:00:00-07:00", "updated_at": null,
            "expiration_date": "2030-01-01"}),
        );
    }
    let found = mem0.query(query("tea")).unwrap().snippets;
    assert_eq!((found.len(), found[0].metadata.as_deref()), (1, Some(r#"{"a":1}"#)));
    assert_eq!(found[0].created_at.as_deref(), Some("2026-01-01T07:00:00Z"));
    assert_eq!(found[0].expires_at.as_deref(), Some("2030-01-01T23:59:59Z"));
    let other = "00000000-0000-4000-8000-00000000000b".to_owned();
    assert!(mem0.get_record(other.clone(), scope()).unwrap().snippet.is_none(), "another user's");
    assert_eq!(
        mem0.forget(forget(vec![other], scope())).unwrap().outcomes[0].effect,
        ForgetEffect::NotFound
    );
}

#[test]
fn lists_go_on_to_their_end() {
    for api in BOTH {
        server::start();
        let mut mem0 = open(api, json!({}));
        for n in 0..120 {
            mem0.capture(capture(&format!("op-{n}"), "one")).unwrap();
        }
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let page = mem0.list_records(list(cursor, 50)).unwrap();
            seen.extend(page.items.into_iter().map(|item| item.id));
            match page.continuation {
                Continuation::Next(next) => cursor = Some(next),
                Continuation::End => break,
                Continuation::CannotContinue => panic!("it can"),
            }
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 120, "{api}");
    }
}

#[test]
fn raw_material_is_extracted_from() {
    let residue = |id: &str, text: &str| CaptureRequest {
        mode: CaptureMode::CaptureResidue,
        ..capture(id, text)
    };
    server::start();
    let mut mem0 = open("self-hosted", json!({}));
    let made = mem0
        .capture(residue("op", "We talked <memhost-recall>old</memhost-recall>about tea"))
        .unwrap();
    assert_eq!((made.records.len(), made.jobs.len()), (1, 0));
    assert_eq!(
        sent()[0].body["messages"],
        json!([{"role": "user", "content": "We talked about tea"}])
    );
    assert_eq!(sent()[0].body["infer"], json!(true));
    assert_eq!(mem0.capture(residue("op", "We talked")).unwrap().records, made.records);
    let turn =
        |role: &str| Turn { role: role.to_owned(), name: None, text: role.to_owned(), at: None };
    let mut request = residue("op-2", "");
    request.payload =
        SourcePayload { turns: vec![turn("assistant"), turn("tool")], ..SourcePayload::default() };
    mem0.capture(request).unwrap();
    let messages =
        json!([{"role": "assistant", "content": "assistant"}, {"role": "user", "content": "tool"}]);
    assert_eq!(sent().pop().unwrap().body["messages"], messages);
    // Only recalled text: there is nothing to learn.
    let before = sent().len();
    assert!(
        mem0.capture(residue("op-3", "<memhost-recall>old</memhost-recall>"))
            .unwrap()
            .records
            .is_empty()
    );
    assert_eq!(sent().len(), before);
    let mut never = open("self-hosted", json!({"infer": "never"}));
    never.capture(residue("op-4", "as it is")).unwrap();
    assert!(sent().iter().any(|sent| sent.body["infer"] == false));
}

#[test]
fn the_hosted_api_extracts_in_an_event() {
    let server = server::start();
    let mut mem0 = open("hosted", json!({}));
    let request = CaptureRequest {
        mode: CaptureMode::CaptureResidue,
        ..capture("op", "We talked about tea")
    };
    let made = mem0.capture(request.clone()).unwrap();
    let job = made.jobs[0].clone();
    assert_eq!((made.records.len(), job.status, job.is_retryable), (0, JobStatus::Running, false));
    assert_eq!(mem0.capture(request.clone()).unwrap().jobs[0].provider_job_id, job.provider_job_id);
    server.borrow_mut().event = json!({"status": "RUNNING"});
    assert_eq!(
        mem0.get_job(job.provider_job_id.clone()).unwrap().unwrap().job.status,
        JobStatus::Running
    );
    server.borrow_mut().event =
        json!({"status": "SUCCEEDED", "results": [{"id": "m-1", "event": "ADD"}]});
    let done = mem0.get_job(job.provider_job_id.clone()).unwrap().unwrap();
    assert_eq!(
        (done.job.status, done.job.record_count, done.records),
        (JobStatus::Succeeded, Some(1), vec!["m-1".to_owned()])
    );
    let page = mem0.list_jobs(scope(), None, 10).unwrap();
    assert_eq!(page.jobs[0].status, JobStatus::Succeeded);
    assert!(mem0.get_job("nobody".to_owned()).unwrap().is_none());
    // A crash lost what was stored: the event is found by what it was sent.
    testing::lose_storage();
    let hook = HookContext {
        hook_kind: HookKind::ManualCapture,
        triggered_at: "2026-01-01T00:00:00Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    };
    let again = mem0.capture(CaptureRequest { hook: Some(hook), ..request }).unwrap();
    assert_eq!(again.jobs[0].provider_job_id, job.provider_job_id);
    server.borrow_mut().event = json!({"status": "FAILED", "error": "no model"});
    let failed = mem0.run_job(job.provider_job_id).unwrap().job;
    assert_eq!((failed.status, failed.error.as_deref()), (JobStatus::Failed, Some("no model")));
}

#[test]
fn requests_are_charged_by_the_configured_prices() {
    server::start();
    let mut mem0 = open("hosted", json!({"addMicrocents": 400, "searchMicrocents": 100}));
    mem0.capture(capture("op", "one")).unwrap();
    mem0.query(query("one")).unwrap();
    let costs: Vec<_> =
        reported().into_iter().map(|usage| (usage.provider, usage.cost_microcents)).collect();
    assert_eq!(costs, [("mem0".to_owned(), Some(400)), ("mem0".to_owned(), Some(100))]);
}

#[test]
fn each_api_has_its_header_and_may_have_none() {
    for (api, name, value) in [
        ("hosted", "authorization", "Token {{secret:MEM0_API_KEY}}"),
        ("self-hosted", "x-api-key", "{{secret:MEM0_API_KEY}}"),
    ] {
        for without in [false, true] {
            server::start();
            open(api, json!({"withoutKey": without})).check_health().unwrap();
            assert_eq!(sent()[0].header(name), (!without).then_some(value));
        }
    }
}

#[test]
fn a_company_is_forgotten_at_once() {
    for api in BOTH {
        let server = server::start();
        let mut mem0 = open(api, json!({}));
        mem0.capture(capture("op", "one")).unwrap();
        let request = |scope| ForgetScopeRequest { operation_id: "op-2".to_owned(), scope };
        assert!(matches!(mem0.forget_scope(request(scope())), Err(Error::Unsupported(_))));
        let answer = mem0.forget_scope(request(Scope::company("company"))).unwrap();
        assert_eq!(answer.extent, Extent::HistoryKept);
        assert!(server.borrow().memories.is_empty());
    }
}

#[test]
fn nothing_is_asked_when_there_is_no_time() {
    server::start();
    let mut mem0 = open("self-hosted", json!({}));
    testing::set_remaining(Duration::from_secs(10));
    mem0.query(query("x")).unwrap();
    assert_eq!(sent()[0].timeout, Duration::from_secs(8));
}
