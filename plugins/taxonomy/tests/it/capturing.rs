//! Captures, jobs, and what they make once.

use memhost_sdk::types::*;
use memhost_sdk::{Extraction, Provider, testing};
use serde_json::json;

use super::{Home, metadata, texts};

#[test]
fn a_capture_leaves_a_job_and_the_job_makes_items() {
    let mut home = Home::new();
    let job = home
        .queue("Hi! I prefer concise answers. We chose SQLite over Postgres. What is the time?");
    assert!(home.list().is_empty(), "nothing is read before the job runs");
    let records = home.run(&job);
    assert_eq!(records.len(), 2);
    let mut kinds: Vec<String> = home
        .list()
        .iter()
        .map(|item| metadata(item)["kind"].as_str().unwrap().to_owned())
        .collect();
    kinds.sort();
    assert_eq!(kinds, ["decision", "preference"]);
    let told = home.provider.get_job(job).unwrap().unwrap().job;
    assert_eq!((told.status, told.record_count), (JobStatus::Succeeded, Some(2)));
}

#[test]
fn what_an_assistant_says_is_no_memory() {
    let said = "My name is Ann. I prefer tea. We decided to use Redis. Never deploy on Fridays.";
    for start in [
        "助手\u{FF1A}",
        "Assistant:",
        "Assistant - ",
        "assistant> ",
        "### Assistant\n",
        "[assistant] ",
        "GPT-4: ",
    ] {
        let mut home = Home::new();
        home.learn(&format!("User: hello\n{start}{said}\nStorage: We decided to use Redis."));
        assert!(home.list().is_empty() && home.pending().is_empty(), "{start}");
    }
    for role in ["assistant", "Assistant", "model", "ai", "tool", "system", "function"] {
        let mut home = Home::new();
        let turn = Turn { role: role.to_owned(), name: None, text: said.to_owned(), at: None };
        let mut request = home.residue("");
        request.payload = SourcePayload { text: None, turns: vec![turn], ..request.payload };
        let job = home.provider.capture(request).unwrap().jobs.remove(0).provider_job_id;
        assert!(home.run(&job).is_empty(), "{role}");
    }
}

#[test]
fn an_item_has_its_rule_and_evidence() {
    let mut home = Home::new();
    let id = home.learn("By the way, I prefer concise answers, and my name is Jerry.").remove(0);
    let item = home.get(&id).unwrap();
    assert_eq!(item.text, "By the way, I prefer concise answers");
    let told = metadata(&item);
    assert_eq!(told["rule"], "preference.prefer");
    assert_eq!(told["evidence"], "By the way, I prefer concise answers, and my name is Jerry.");
    assert_eq!(
        (&told["status"], &told["piiRisk"], &told["subject"]),
        (&json!("approved"), &json!(0), &json!("user"))
    );
    assert!(told["confidence"].as_f64().unwrap() >= 0.72 && told["tags"].is_array());
    assert_eq!(item.source, Some(testing::source()));
}

#[test]
fn a_repeated_capture_or_job_makes_no_second_item() {
    let mut home = Home::new();
    let mut request = home.residue("I prefer tea. My goal is to run a marathon.");
    request.hook = Some(HookContext {
        hook_kind: HookKind::PostRunCapture,
        triggered_at: "2026-03-01T00:00:00Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    });
    let first = home.provider.capture(request.clone()).unwrap().jobs.remove(0);
    let again = home.provider.capture(request.clone()).unwrap();
    assert_eq!(again.jobs[0].provider_job_id, first.provider_job_id, "the same event");
    let other = CaptureRequest { operation_id: "another".to_owned(), ..request.clone() };
    assert_ne!(
        home.provider.capture(other).unwrap().jobs[0].provider_job_id,
        first.provider_job_id
    );

    let made = home.run(&first.provider_job_id);
    let all = home.list();
    home.restart();
    assert_eq!(home.run(&first.provider_job_id), made);
    assert_eq!(home.list(), all);
    let answered = home.provider.capture(request).unwrap().jobs.remove(0);
    assert_eq!((answered.status, answered.record_count), (JobStatus::Succeeded, Some(2)));
}

#[test]
fn a_job_that_ran_is_not_run_again_even_after_its_items_were_forgotten() {
    let mut home = Home::new();
    let job = home.queue("I prefer tea.");
    let ids = home.run(&job);
    home.provider.forget(testing::forget(ids, testing::scope())).unwrap();
    home.run(&job);
    assert!(home.list().is_empty());
    assert_eq!(home.learn("I prefer tea.").len(), 1, "said anew, it is known anew");
}

#[test]
fn a_repeated_statement_is_one_item() {
    let mut home = Home::new();
    let first = home.learn("I prefer concise answers.");
    let second = home.learn("As I said: I prefer other things. I prefer concise answers!");
    assert!(second.contains(&first[0]), "{second:?}");
    let same: Vec<String> =
        texts(home.list()).into_iter().filter(|text| text.contains("concise")).collect();
    assert_eq!(same.len(), 1);
}

#[test]
fn long_texts_are_read_in_slices() {
    let mut home = Home::new();
    let text: String = (0..1_000).map(|n| format!("Note: item number {n} is blue.\n")).collect();
    let job = home.queue(&text);
    let first = home.provider.run_job(job.clone()).unwrap();
    assert_eq!(first.job.status, JobStatus::Queued);
    home.restart();
    assert_eq!(home.run(&job).len(), 1_000);
    let page = home.provider.list_records(testing::list(None, 1_000)).unwrap();
    assert_eq!(page.items.len(), 1_000);
}

#[test]
fn a_cancelled_job_makes_nothing() {
    let mut home = Home::new();
    let job = home.queue("I prefer tea.");
    assert_eq!(home.provider.cancel_job(job.clone()).unwrap().status, JobStatus::Cancelled);
    assert_eq!(home.provider.run_job(job.clone()).unwrap().job.status, JobStatus::Cancelled);
    assert!(home.list().is_empty());
    assert_eq!(
        home.provider.cancel_job(job).unwrap().status,
        JobStatus::Cancelled,
        "cancelling again changes nothing"
    );
    let done = home.queue("I prefer milk.");
    home.run(&done);
    assert_eq!(home.provider.cancel_job(done).unwrap().status, JobStatus::Succeeded);
    assert!(matches!(home.provider.run_job("nobody".to_owned()), Err(Error::NotFound(_))));
}

#[test]
fn jobs_are_listed_newest_first_and_page_by_page() {
    let mut home = Home::new();
    let mut made = Vec::new();
    for n in 0..5 {
        memhost_taxonomy::fix(Some(format!("2026-03-04T10:00:0{n}Z").parse().unwrap()));
        made.push(home.queue(&format!("text {n}")));
    }
    made.reverse();
    let (mut listed, mut cursor) = (Vec::new(), None);
    loop {
        let page = home.provider.list_jobs(testing::scope(), cursor, 2).unwrap();
        listed.extend(page.jobs.into_iter().map(|job| job.provider_job_id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, made);
    let other = Scope { agent_id: Some("bob".to_owned()), ..testing::scope() };
    assert!(home.provider.list_jobs(other, None, 10).unwrap().jobs.is_empty());
}

#[test]
fn messages_are_read_as_a_conversation() {
    let mut home = Home::new();
    let object = json!({"messages": [
        {"role": "user", "content": "I prefer tea."},
        {"role": "assistant", "content": [{"type": "text", "text": "I prefer prose."}]},
    ]});
    let mut request = home.residue("");
    request.payload =
        SourcePayload { object: Some(object.to_string()), ..SourcePayload::default() };
    let job = home.provider.capture(request.clone()).unwrap().jobs.remove(0).provider_job_id;
    home.run(&job);
    assert_eq!(texts(home.list()), ["I prefer tea."]);
    request.payload.object = Some(json!({"picture": 7}).to_string());
    request.operation_id = "other".to_owned();
    assert!(matches!(home.provider.capture(request), Err(Error::Unsupported(_))));
}

#[test]
fn a_job_may_find_nothing() {
    let mut home = Home::new();
    assert!(home.learn("Thanks! How are you?\n```\nI prefer tea\n```").is_empty());
    let request = home.residue("  \n ");
    assert_eq!(home.provider.capture(request).unwrap(), CaptureResponse::default());
}
