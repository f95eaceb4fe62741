//! With a model.

use memhost_cross_agent::CrossAgent;
use memhost_sdk::types::*;
use memhost_sdk::{Explain, Extraction, Provider, storage, testing};
use serde_json::json;

use crate::{ids, open, project, put, score};

/// A model that knows two topics: doors, and everything else.
fn topics(text: &str) -> Vec<f32> {
    let text = text.to_lowercase();
    let door = ["gate", "door", "entrance"].iter().any(|word| text.contains(word));
    let lean = if text.contains("perhaps") { 0.6_f32 } else { 0.9 };
    let (a, b) =
        if door { (lean, (1.0 - lean * lean).sqrt()) } else { ((1.0 - lean * lean).sqrt(), lean) };
    vec![a, -b, 0.0, 0.0]
}

fn vectors() -> usize {
    storage::scan(b"v\0".to_vec()).count()
}

/// Runs the jobs that writes left.
fn settle(provider: &mut CrossAgent) {
    for job in provider.list_jobs(testing::scope(), None, 100).unwrap().jobs {
        while provider.run_job(job.provider_job_id.clone()).unwrap().job.finished_at.is_none() {}
    }
}

#[test]
fn items_are_found_by_meaning() {
    let mut provider = open();
    testing::embed_with("topics", 4, topics);
    put(&mut provider, &project("p"), "a", "The entrance is locked at night", &json!({}));
    put(&mut provider, &project("p"), "b", "Lunch is at noon", &json!({}));
    put(&mut provider, &project("q"), "c", "The door of another project", &json!({}));
    assert_eq!(vectors(), 0, "nobody waits for the model");
    settle(&mut provider);
    assert_eq!(vectors(), 3);
    let found = ids(&mut provider, &project("p"), "gate hours");
    assert_eq!(found, ["a"], "lunch is no closer to a gate than made-up words are");
    let mut again: CrossAgent = testing::reopen().unwrap();
    testing::embed_with("topics", 4, topics);
    assert_eq!(ids(&mut again, &project("p"), "gate hours"), found);
    let request = QueryRequest { scope: project("p"), ..testing::query("gate hours") };
    let told = again.explain_query(request).unwrap();
    let names: Vec<&str> =
        told.hits[0].contributions.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["words", "meaning", "coverage", "relevance", "recency", "confidence"]);
    // A changed text has another meaning.
    put(&mut again, &project("p"), "a", "Breakfast is at eight", &json!({}));
    put(&mut again, &project("p"), "b", "The door is green", &json!({}));
    settle(&mut again);
    assert_eq!(ids(&mut again, &project("p"), "gate hours")[0], "b");
}

#[test]
fn both_legs_count() {
    let mut provider = open();
    testing::embed_with("topics", 4, topics);
    put(&mut provider, &project("p"), "words", "Red lunch, perhaps", &json!({}));
    put(&mut provider, &project("p"), "meaning", "The door", &json!({}));
    put(&mut provider, &project("p"), "both", "The red entrance", &json!({}));
    settle(&mut provider);
    let request = QueryRequest { scope: project("p"), ..testing::query("red gate") };
    let found = provider.query(request).unwrap().snippets;
    assert_eq!(found[0].id, "both");
    assert!(score(&found[0]) > score(&found[1]));
}

#[test]
fn a_capture_leaves_a_job_that_embeds_waiting_items() {
    let mut provider = open();
    let many: Vec<String> = (0..100).map(|n| format!("item {n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    provider.upsert_records(testing::upsert("before", &many)).unwrap();
    assert!(provider.capture(testing::capture("none", "no model yet")).unwrap().jobs.is_empty());
    testing::embed_with("topics", 4, topics);
    let answer = provider.capture(testing::capture("op", "The gate")).unwrap();
    let job = &answer.jobs[0];
    assert_eq!((job.status, vectors()), (JobStatus::Queued, 0), "nobody waits for the model");
    let mut calls = 0;
    loop {
        calls += 1;
        let result = provider.run_job(job.provider_job_id.clone()).unwrap();
        assert!(vectors() <= calls * 256, "a call is no longer than a batch");
        if result.job.status == JobStatus::Succeeded {
            break;
        }
        assert_eq!(result.job.status, JobStatus::Queued);
        assert!(calls < 20);
    }
    assert_eq!(vectors(), 102);
    assert!(calls > 1);
    let known = provider.get_job(job.provider_job_id.clone()).unwrap().unwrap().job;
    assert_eq!((known.status, known.record_count), (JobStatus::Succeeded, Some(0)));
    let listed = provider.list_jobs(testing::scope(), None, 10).unwrap();
    assert_eq!(listed.jobs.len(), 1);
    let second = provider.capture(testing::capture("op-2", "The door")).unwrap().jobs.remove(0);
    let cancelled = provider.cancel_job(second.provider_job_id.clone()).unwrap();
    assert_eq!(cancelled.status, JobStatus::Cancelled);
    let left = provider.run_job(second.provider_job_id).unwrap();
    assert_eq!((left.job.status, vectors()), (JobStatus::Cancelled, 102));
    assert!(matches!(provider.run_job("unknown".into()), Err(Error::NotFound(_))));
}

#[test]
fn another_model_does_not_read_the_first_ones_vectors() {
    let mut provider = open();
    testing::embed_with("topics", 4, topics);
    put(&mut provider, &project("p"), "a", "The entrance", &json!({}));
    settle(&mut provider);
    testing::embed_with("inverse", 4, |text| {
        topics(text).into_iter().map(|number| -number).collect()
    });
    // Neither words nor a vector of this model: not found until it is embedded again.
    assert!(ids(&mut provider, &project("p"), "gate").is_empty());
    put(&mut provider, &project("p"), "b", "Lunch", &json!({}));
    settle(&mut provider);
    assert_eq!(ids(&mut provider, &project("p"), "gate"), ["a"]);
}

#[test]
fn nothing_fits_a_question_that_is_closer_to_made_up_words() {
    let mut provider = open();
    testing::embed_with("topics", 4, topics);
    put(&mut provider, &project("p"), "door", "The door is green", &json!({}));
    put(&mut provider, &project("p"), "lunch", "Lunch is at noon", &json!({}));
    settle(&mut provider);
    assert_eq!(ids(&mut provider, &project("p"), "xyzzy plugh"), Vec::<String>::new());
    assert_eq!(ids(&mut provider, &project("p"), "entrance"), ["door"]);
    // A word that is there counts in any case.
    assert_eq!(ids(&mut provider, &project("p"), "xyzzy lunch")[0], "lunch");
    // For the start of a run the most useful items are better than nothing.
    let start = QueryRequest {
        scope: project("p"),
        intent: Intent::AgentPreamble,
        ..testing::query("xyzzy")
    };
    assert_eq!(provider.query(start).unwrap().snippets.len(), 2);
}
