//! Records found by what they mean: jobs make the vectors, and vectors go where their record goes.

use std::cell::Cell;

use memhost_sdk::types::{
    CaptureRequest, CorrectRequest, Error, JobStatus, Patch, QueryRequest, RecordWrite, Scope,
};
use memhost_sdk::{Correction, Explain, Extraction, Provider, storage, testing};

use super::Home;
use crate::quality::models::run_jobs;

thread_local! {
    /// Texts that this test has embedded.
    static EMBEDDED: Cell<usize> = const { Cell::new(0) };
}

/// Two kinds of things, whatever they are called.
fn kinds(text: &str) -> Vec<f32> {
    EMBEDDED.set(EMBEDDED.get() + 1);
    let has = |words: &[&str]| words.iter().any(|word| text.to_lowercase().contains(word));
    let mut vector = vec![0.0; 256];
    match (has(&["car", "automobile"]), has(&["whale", "cetacean"])) {
        (true, false) => vector[0] = 1.0,
        (false, true) => vector[1] = 1.0,
        _ => vector[2] = 1.0,
    }
    vector
}

fn home() -> Home {
    let home = Home::new();
    testing::embed_with("kinds", 256, kinds);
    home
}

fn capture(home: &mut Home, operation: &str, text: &str) -> (String, Vec<String>) {
    let answer = home.provider.capture(testing::capture(operation, text)).unwrap();
    (answer.records[0].clone(), answer.jobs.into_iter().map(|job| job.provider_job_id).collect())
}

fn record(text: &str) -> RecordWrite {
    RecordWrite { text: text.to_owned(), ..RecordWrite::default() }
}

fn stored() -> usize {
    storage::scan("vectors/").count()
}

#[test]
fn a_record_is_found_by_meaning_after_its_job_has_run() {
    let mut home = home();
    let (_, first) = capture(&mut home, "1", "The car is red.");
    let (_, second) = capture(&mut home, "2", "A whale was seen.");
    assert_eq!((first.len(), &first), (1, &second), "one job does for all that wait");
    assert!(home.ask("automobile").is_empty());
    let ended = home.provider.run_job(first[0].clone()).unwrap().job;
    assert_eq!((ended.status, ended.record_count), (JobStatus::Succeeded, Some(0)));
    assert_eq!(home.ask("automobile"), ["The car is red."]);
    assert_eq!(home.ask("cetaceans"), ["A whale was seen."]);
    let hits = home.provider.explain_query(testing::query("cetaceans")).unwrap().hits;
    let share =
        |name: &str| hits[0].contributions.iter().find(|part| part.name == name).unwrap().value;
    assert!(share("meaning") > 0.0 && share("words") == 0.0);
    let (_, third) = capture(&mut home, "3", "Another car.");
    assert_ne!(first, third, "a job that has ended does nothing more");
}

#[test]
fn nothing_fits_a_question_that_is_closer_to_made_up_words() {
    let mut home = home();
    capture(&mut home, "1", "The car is red.");
    capture(&mut home, "2", "The library opens at nine.");
    run_jobs(&mut home.provider);
    assert_eq!(home.ask("xyzzy plugh"), Vec::<String>::new());
    assert_eq!(home.ask("automobile"), ["The car is red."]);
    assert_eq!(
        home.ask("xyzzy library")[0],
        "The library opens at nine.",
        "a word that is there counts"
    );
    home.restart();
    testing::embed_with("kinds", 256, kinds);
    assert_eq!(home.ask("xyzzy plugh"), Vec::<String>::new());
}

#[test]
fn without_a_weight_for_meaning_no_text_is_embedded() {
    let mut home = Home::with(&serde_json::json!({"ranking": {"meaning": 0}}));
    testing::embed_with("kinds", 256, |text| panic!("{text} was embedded"));
    let (_, jobs) = capture(&mut home, "1", "The car is red.");
    assert!(jobs.is_empty());
    assert_eq!(home.ask("red car").len(), 1);
}

#[test]
fn the_vectors_of_a_long_record_are_limited_by_storage() {
    let mut home = Home::new();
    testing::embed_with("wide", 4_096, |_| vec![1.0 / 64.0; 4_096]);
    capture(&mut home, "1", &"many words of a long text, ".repeat(20_000));
    run_jobs(&mut home.provider);
    assert_eq!(stored(), 1);
    let (_, value) = storage::scan("vectors/").next().unwrap().unwrap();
    assert!((2 << 20..4 << 20).contains(&value.len()), "{}", value.len());
}

#[test]
fn a_binding_without_a_model_leaves_no_jobs() {
    let mut home = Home::new();
    assert!(capture(&mut home, "1", "The car is red.").1.is_empty());
    assert_eq!(stored(), 0);
}

#[test]
fn jobs_are_known_run_once_and_can_be_cancelled() {
    let mut home = home();
    let (_, jobs) = capture(&mut home, "1", &"many words of a long text, ".repeat(600));
    let id = jobs[0].clone();
    assert!(matches!(home.provider.run_job("nothing".to_owned()), Err(Error::NotFound(_))));
    assert_eq!(
        home.provider.run_job(id.clone()).unwrap().job.status,
        JobStatus::Queued,
        "more than one call's work"
    );
    home.restart();
    run_jobs(&mut home.provider);
    assert_eq!(
        home.provider.get_job(id.clone()).unwrap().unwrap().job.status,
        JobStatus::Succeeded
    );
    assert_eq!(home.provider.cancel_job(id.clone()).unwrap().status, JobStatus::Succeeded);
    assert_eq!(home.provider.run_job(id).unwrap().job.status, JobStatus::Succeeded);
    let (_, jobs) = capture(&mut home, "2", "The car is red.");
    assert_eq!(home.provider.cancel_job(jobs[0].clone()).unwrap().status, JobStatus::Cancelled);
    home.provider.run_job(jobs[0].clone()).unwrap();
    assert!(home.ask("automobile").is_empty(), "nobody wanted it");
    let (_, jobs) = capture(&mut home, "3", "no matter");
    home.provider.run_job(jobs[0].clone()).unwrap();
    assert_eq!(home.ask("automobile").len(), 1, "the next job makes what is missing");
}

/// The host tries a job some times, gives it up, and never takes one of its id again.
#[test]
fn a_job_that_the_host_stopped_running_is_replaced() {
    let mut home = home();
    let (_, jobs) = capture(&mut home, "1", "The car is red.");
    let (key, value) = storage::scan("jobs").next().unwrap().unwrap();
    let mut stored: serde_json::Value = serde_json::from_slice(&value).unwrap();
    let left = stored["submittedAt"]["secs_since_epoch"].as_u64().unwrap();
    for (hours, is_same) in [(0, true), (1, false)] {
        stored["submittedAt"]["secs_since_epoch"] = (left - hours * 3_600).into();
        let mut batch = storage::Batch::new();
        batch.put_raw(key.clone(), serde_json::to_vec(&stored).unwrap());
        batch.apply().unwrap();
        let (_, again) = capture(&mut home, &format!("after {hours}"), "no matter");
        assert_eq!(again == jobs, is_same, "{hours}");
    }
    assert_eq!(
        home.provider.get_job(jobs[0].clone()).unwrap().unwrap().job.status,
        JobStatus::Cancelled
    );
}

#[test]
fn vectors_are_removed_with_their_record() {
    let mut home = home();
    let (car, _) = capture(&mut home, "1", "The car is red.");
    let (whale, _) = capture(&mut home, "2", "A whale was seen.");
    run_jobs(&mut home.provider);
    assert_eq!(stored(), 2);
    home.provider.forget(testing::forget(vec![car], testing::scope())).unwrap();
    assert_eq!(stored(), 1, "a forgotten record's vector would still tell of it");
    assert!(home.ask("automobile").is_empty());
    let patch = Patch::Replacement(record("A car, after all."));
    let request =
        CorrectRequest { operation_id: "3".to_owned(), id: whale, scope: testing::scope(), patch };
    home.provider.correct(request).unwrap();
    assert_eq!(stored(), 0, "it is of a text that is no more");
    assert!(home.ask("cetacean").is_empty());
    run_jobs(&mut home.provider);
    assert_eq!(home.ask("automobile"), ["A car, after all."], "a correction leaves a job, too");
}

#[test]
fn vectors_survive_a_restart_and_are_recomputed_for_another_model() {
    let mut home = home();
    capture(&mut home, "1", "The car is red.");
    capture(&mut home, "2", "A whale was seen.");
    run_jobs(&mut home.provider);
    std::fs::remove_file(home.file_with("whale")).unwrap();
    home.restart();
    let before = EMBEDDED.get();
    assert_eq!(home.ask("automobile").len(), 1);
    assert!(home.ask("cetacean").is_empty());
    assert_eq!(EMBEDDED.get() - before, 2 * 2 + 16, "the questions again, and made-up words once");
    assert_eq!(stored(), 1, "what belongs to no file goes");
    testing::embed_with("other", 128, |text| kinds(text)[..128].to_vec());
    assert!(home.ask("automobile").is_empty(), "vectors of two models must not be compared");
    capture(&mut home, "3", "no matter");
    run_jobs(&mut home.provider);
    assert_eq!(home.ask("automobile").len(), 1);
}

#[test]
fn similar_records_of_other_scopes_stay_hidden() {
    let mut home = home();
    let scope = Scope { subject_id: Some("ana".to_owned()), ..testing::scope() };
    home.write("1", vec![record("The car is red.")], scope.clone());
    run_jobs(&mut home.provider);
    let ask = |scope| QueryRequest { scope, ..testing::query("automobile") };
    assert_eq!(home.provider.query(ask(scope.clone())).unwrap().snippets.len(), 1);
    let other = Scope { subject_id: Some("ben".to_owned()), ..scope };
    assert!(home.provider.query(ask(other)).unwrap().snippets.is_empty());
}

#[test]
fn vectors_survive_the_loss_of_the_index() {
    let mut home = home();
    capture(&mut home, "1", "The car is red.");
    run_jobs(&mut home.provider);
    storage::scan("page/").map(Result::unwrap).for_each(|(key, _)| {
        let mut batch = storage::Batch::new();
        batch.delete_raw(key);
        batch.apply().unwrap();
    });
    home.restart();
    assert_eq!(home.ask("automobile").len(), 1);
    assert_eq!(stored(), 1);
}

#[test]
fn a_turn_is_found_by_the_meaning_of_the_turn_beside_it_until_that_is_forgotten() {
    let mut home = home();
    let scope = Scope { session_key: Some("talk".to_owned()), ..testing::scope() };
    let say = |home: &mut Home, operation: &str, text: &str, scope: &Scope| {
        let capture = CaptureRequest { scope: scope.clone(), ..testing::capture(operation, text) };
        home.provider.capture(capture).unwrap().records.remove(0)
    };
    let question = say(&mut home, "1", "When did you get the car?", &scope);
    let answer = say(&mut home, "2", "In May.", &scope);
    say(
        &mut home,
        "3",
        "In June.",
        &Scope { session_key: Some("elsewhere".to_owned()), ..testing::scope() },
    );
    run_jobs(&mut home.provider);
    // The word that a record has makes the question one that is not nonsense.
    let meaning = |home: &mut Home| {
        let hits = home.provider.explain_query(testing::query("automobile june")).unwrap().hits;
        let hit = hits.into_iter().find(|hit| hit.id == answer)?;
        hit.contributions.into_iter().find(|part| part.name == "meaning").map(|part| part.value)
    };
    assert!(meaning(&mut home).unwrap() > 0.0);
    home.provider.forget(testing::forget(vec![question], scope)).unwrap();
    assert_eq!(meaning(&mut home), None);
    assert_eq!(stored(), 2, "a vector has nothing of another record");
}
