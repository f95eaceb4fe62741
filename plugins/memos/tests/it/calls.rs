//! What a MemOS in memory and its own codes show: scopes, corrections, feedback, jobs, errors,
//! prices.

use std::cell::RefCell;
use std::rc::Rc;

use memhost_sdk::testing::faults::Stand;
use memhost_sdk::testing::http::{Answer, sent, serve};
use memhost_sdk::testing::{self, capture, forget, list, query, reported, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Correction, Erasure, Extraction, Health, Provider};
use serde_json::{Value, json};

use super::open;
use super::server::State;

fn start() -> Rc<RefCell<State>> {
    let state = Rc::new(RefCell::new(State::default()));
    let inner = Rc::clone(&state);
    serve(move |sent| Ok(inner.borrow_mut().answer(sent)));
    state
}

fn of(agent: &str) -> Scope {
    Scope { agent_id: Some(agent.to_owned()), ..scope() }
}

fn answers(code: u32, data: &Value) {
    let data = data.clone();
    serve(move |_| Ok(Answer::json(200, json!({"code": code, "message": "No.", "data": data}))));
}

#[test]
fn codes_are_errors_whatever_the_status() {
    for (code, said) in [
        (40_132, "Unauthorized"),
        (40_300, "RateLimited"),
        (40_306, "Unauthorized"),
        (50_004, "Unavailable"),
        (40_002, "InvalidRequest"),
    ] {
        answers(code, &Value::Null);
        let error = format!("{:?}", open(json!({})).check_health().unwrap_err());
        assert!(error.contains(said) && error.contains(&format!("{code}: No.")), "{error}");
    }
    serve(|_| Ok(Answer::json(200, json!({"status": "ok"}))));
    assert!(matches!(open(json!({})).check_health(), Err(Error::Internal(_))));
}

#[test]
fn what_is_missing_is_none() {
    for code in [40_001, 40_308] {
        answers(code, &Value::Null);
        let mut memos = open(json!({}));
        assert!(memos.query(query("gate")).unwrap().snippets.is_empty());
        assert!(memos.list_records(list(None, 10)).unwrap().items.is_empty());
        assert!(memos.get_record("abc".to_owned(), scope()).unwrap().snippet.is_none());
        assert_eq!(
            memos.forget(forget(vec!["abc".to_owned()], scope())).unwrap().outcomes[0].effect,
            ForgetEffect::NotFound
        );
        assert!(memos.get_job("nobody".to_owned()).unwrap().is_none());
    }
}

#[test]
fn a_record_as_it_is_is_not_promised() {
    serve(|sent| panic!("{sent:?}"));
    assert!(matches!(
        open(json!({})).upsert_records(upsert("op", &["one"])),
        Err(Error::Unsupported(_))
    ));
    let recalled = capture("op", "<memhost-recall>old</memhost-recall>");
    assert!(open(json!({})).capture(recalled).unwrap().jobs.is_empty());
    let long = capture(&"_".repeat(40), "text");
    assert!(matches!(open(json!({})).capture(long), Err(Error::InvalidRequest(_))));
}

#[test]
fn agents_find_their_own_memories_also_where_a_search_tells_less() {
    for tells_less in [false, true] {
        let state = start();
        state.borrow_mut().tells_less = tells_less;
        let mut memos = open(json!({}));
        for (agent, text) in [("ada", "The gate is green."), ("bob", "The gate is red.")] {
            let metadata = Some(json!({"topic": agent}).to_string());
            let job = memos
                .capture(CaptureRequest { scope: of(agent), metadata, ..capture(agent, text) })
                .unwrap();
            assert_eq!(job.jobs[0].status, JobStatus::Running);
        }
        let hits = memos
            .query(QueryRequest { scope: of("ada"), ..query("which gate is green") })
            .unwrap()
            .snippets;
        assert_eq!((hits.len(), hits[0].text.as_str()), (1, "The gate is green."));
        assert_eq!(hits[0].score, Score::Similarity(0.75));
        assert_eq!(hits[0].scope.as_ref().unwrap().agent_id.as_deref(), Some("ada"));
        assert_eq!(hits[0].metadata.as_deref(), Some(r#"{"topic":"ada"}"#));
        assert_eq!(hits[0].created_at.as_deref(), Some("2026-11-24T02:00:00Z"));
        let all = QueryRequest { scope: Scope::company("company"), ..query("gate") };
        assert_eq!(memos.query(all.clone()).unwrap().snippets.len(), 2);
        let filter = Some(r#"{"topic":"bob"}"#.to_owned());
        let found =
            memos.query(QueryRequest { metadata_filter: filter, ..all.clone() }).unwrap().snippets;
        assert_eq!((found.len(), found[0].text.as_str()), (1, "The gate is red."));
        let other = found[0].id.clone();
        assert!(memos.get_record(other.clone(), of("ada")).unwrap().snippet.is_none());
        assert_eq!(
            memos.forget(forget(vec![other], of("ada"))).unwrap().outcomes[0].effect,
            ForgetEffect::NotFound
        );
        // Without the notes it is not known whose it is: no agent sees it.
        testing::lose_storage();
        let seen =
            memos.query(QueryRequest { scope: of("bob"), ..query("red") }).unwrap().snippets.len();
        assert_eq!((seen, memos.query(all).unwrap().snippets.len()), (usize::from(!tells_less), 2));
    }
}

#[test]
fn memories_of_others_are_found_and_those_of_other_users_are_not() {
    let state = start();
    state.borrow_mut().make("The gate is old.", &json!("u"), &json!("chat"), &Value::Null);
    state.borrow_mut().make("The gate is new.", &json!("v"), &json!("chat"), &Value::Null);
    let mut memos = open(json!({}));
    let hits = memos.query(query("gate")).unwrap().snippets;
    assert_eq!((hits.len(), hits[0].text.as_str(), &hits[0].scope), (1, "The gate is old.", &None));
    assert_eq!(
        hits[0].metadata.as_deref(),
        Some(r#"{"key":"said","tags":["a"],"type":"LongTermMemory"}"#)
    );
    let ids: Vec<String> = state
        .borrow()
        .memories
        .iter()
        .map(|memory| memory["id"].as_str().unwrap().to_owned())
        .collect();
    let mut is_there =
        |id: &String| memos.get_record(id.clone(), scope()).unwrap().snippet.is_some();
    assert_eq!((is_there(&ids[1]), is_there(&ids[0])), (true, false));
    state.borrow_mut().memories[1]["status"] = "archived".into();
    assert!(!is_there(&ids[1]), "another one took its place");
}

#[test]
fn a_memory_whose_user_is_not_told_is_looked_for_among_those_of_the_user() {
    let memory = |id: &str| {
        json!({
            "id": id, "memory_value": "one", "conversation_id": "c",
            "create_time": 1_764_000_000_000_u64,
        })
    };
    serve(move |sent| {
        let own = json!({
            "memory_detail_list": [memory("own")], "preference_detail_list": [], "pages": 1,
        });
        let data =
            if sent.method == "GET" { memory(sent.path.rsplit('/').next().unwrap()) } else { own };
        Ok(Answer::json(200, json!({"code": 0, "data": data})))
    });
    let mut memos = open(json!({}));
    let own = memos.get_record("own".to_owned(), scope()).unwrap().snippet.unwrap();
    assert_eq!(own.created_at.as_deref(), Some("2025-11-24T16:00:00Z"));
    assert!(memos.get_record("other".to_owned(), scope()).unwrap().snippet.is_none());
}

#[test]
fn a_job_follows_its_task() {
    let state = start();
    let mut memos = open(json!({}));
    let turn = |role: &str, text: &str, at: Option<&str>| Turn {
        role: role.to_owned(),
        name: None,
        text: text.to_owned(),
        at: at.map(str::to_owned),
    };
    let turns = vec![
        turn(
            "user",
            "I like tea. <memhost-recall>The sea is wide.</memhost-recall>",
            Some("2026-01-01T00:00:00Z"),
        ),
        turn("assistant", "So do I.", None),
        turn("tool", "<memhost-recall>x</memhost-recall>", None),
    ];
    let talk = CaptureRequest {
        payload: SourcePayload { turns, ..SourcePayload::default() },
        ..capture("op:1", "")
    };
    state.borrow_mut().status = "running".to_owned();
    let id = memos.capture(talk).unwrap().jobs.remove(0).provider_job_id;
    let said = json!([
        {"role": "user", "content": "I like tea. ", "chat_time": "2026-01-01T00:00:00Z"},
        {"role": "assistant", "content": "So do I."},
    ]);
    assert_eq!((&sent()[0].body["messages"], id.as_str()), (&said, "memhost-op_3a1"));
    assert_eq!(memos.get_job(id.clone()).unwrap().unwrap().job.status, JobStatus::Running);
    state.borrow_mut().status = "completed".to_owned();
    let done = memos.get_job(id).unwrap().unwrap();
    assert_eq!((done.job.status, done.records.len()), (JobStatus::Succeeded, 1));

    state.borrow_mut().status = "failed".to_owned();
    let id = memos.capture(capture("op-2", "text")).unwrap().jobs.remove(0).provider_job_id;
    let failed = memos.run_job(id).unwrap().job;
    assert_eq!((failed.status, failed.is_retryable), (JobStatus::Failed, false));
    // The messages are gone with the task.
    let id = memos.capture(capture("op-3", "text")).unwrap().jobs.remove(0).provider_job_id;
    *state.borrow_mut() = State::default();
    assert_eq!(memos.run_job(id).unwrap().job.status, JobStatus::Failed);
}

#[test]
fn an_instruction_is_feedback_and_only_the_text_is_replaced() {
    let state = start();
    let mut memos = open(json!({"addMicrocents": 400, "searchMicrocents": 100}));
    let job = memos.capture(capture("op", "The gate is green.")).unwrap().jobs.remove(0);
    let id = memos.run_job(job.provider_job_id).unwrap().records.remove(0);
    let request = |id: &str, patch| CorrectRequest {
        operation_id: "op-2".to_owned(),
        id: id.to_owned(),
        scope: scope(),
        patch,
    };
    let said = Patch::Instruction("It is blue since Friday.".to_owned());
    for _ in 0..2 {
        assert_eq!(memos.correct(request(&id, said.clone())).unwrap().record_id, id);
    }
    let given = json!([{"user_id": "u", "conversation_id": "memhost-op",
        "feedback_content": "It is blue since Friday.\n\nThis is about: The gate is green."}]);
    assert_eq!(json!(state.borrow().feedback), given, "once");
    assert!(matches!(memos.correct(request("nobody", said)), Err(Error::NotFound(_))));
    let more = RecordWrite {
        text: "x".to_owned(),
        metadata: Some("{}".to_owned()),
        ..RecordWrite::default()
    };
    assert!(matches!(
        memos.correct(request(&id, Patch::Replacement(more))),
        Err(Error::Unsupported(_))
    ));
    memos.query(query("gate")).unwrap();
    let costs: Vec<_> =
        reported().into_iter().map(|usage| usage.cost_microcents.unwrap()).collect();
    assert_eq!(costs, [400, 400, 100]);
}

#[test]
fn a_company_is_forgotten_at_once_and_what_was_said_stays() {
    let config = json!({"url": "https://memos.memtensor.cn/api/openmem/v1"});
    let mut memos: memhost_memos::Memos = testing::open(config).unwrap();
    let request = |scope| ForgetScopeRequest { operation_id: "op-2".to_owned(), scope };
    assert!(matches!(memos.forget_scope(request(scope())), Err(Error::Unsupported(_))));
    serve(|sent| {
        assert_eq!(
            (sent.path.as_str(), &sent.body),
            ("/api/openmem/v1/delete/memory", &json!({"user_id": "memhost-company"}))
        );
        Ok(Answer::json(200, json!({"code": 0, "data": {"success": true}})))
    });
    assert_eq!(
        memos.forget_scope(request(Scope::company("company"))).unwrap().extent,
        Extent::HistoryKept
    );
}
