//! States, pages, and the one job that waits.

use std::time::Duration;

use super::*;
use crate::testing;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(seconds * 1_000 + 250)
}

fn ids(page: &JobPage) -> Vec<&str> {
    page.jobs.iter().map(|job| job.provider_job_id.as_str()).collect()
}

#[test]
fn a_job_ends_once_and_has_its_records() {
    testing::reset(serde_json::json!({}));
    let jobs = Jobs::<u32>::new("jobs");
    let mut job = Job::new("a", at(1), 7);
    job.go_on(at(2));
    job.records.push("r-1".to_owned());
    jobs.put(&job).unwrap();
    let mut job = jobs.get("a").unwrap();
    assert_eq!((job.work, job.has_ended(), job.shown().record_count), (7, false, None));
    assert_eq!(job.shown().status, JobStatus::Queued, "the host shall run it on");
    job.succeed(at(3));
    job.cancel(at(4));
    job.fail("no", at(5));
    let result = job.result();
    assert_eq!((result.job.status, result.job.record_count), (JobStatus::Succeeded, Some(1)));
    assert_eq!(result.records, ["r-1"]);
    let times = [result.job.submitted_at, result.job.started_at, result.job.finished_at]
        .map(Option::unwrap);
    assert_eq!(
        times,
        ["1970-01-01T00:00:01.250Z", "1970-01-01T00:00:02.250Z", "1970-01-01T00:00:03.250Z"]
    );
    let mut failed = Job::new("b", at(1), 7);
    failed.fail("the text is gone", at(2));
    let shown = failed.shown();
    assert_eq!(
        (shown.status, shown.error.as_deref()),
        (JobStatus::Failed, Some("the text is gone"))
    );
    assert!(shown.is_retryable && !result.job.is_retryable);
    jobs.put(&failed).unwrap();
    let again = jobs.retry("b").unwrap().shown();
    assert_eq!((again.status, again.error, again.is_retryable), (JobStatus::Queued, None, false));
    jobs.put(&job).unwrap();
    assert_eq!(jobs.retry("a").unwrap().state, State::Succeeded, "there is nothing to try again");
}

#[test]
fn unknown_jobs_are_named() {
    testing::reset(serde_json::json!({}));
    let jobs = Jobs::<()>::new("jobs");
    assert!(jobs.find("x").unwrap().is_none());
    assert!(matches!(jobs.get("x"), Err(Error::NotFound(message)) if message.contains("`x`")));
}

fn with<T: Serialize + DeserializeOwned>(
    jobs: &Jobs<T>,
    id: &str,
    time: u64,
    work: T,
    has_ended: bool,
) {
    let mut job = Job::new(id, at(time), work);
    if has_ended {
        job.succeed(at(time));
    }
    jobs.put(&job).unwrap();
}

#[test]
fn pages_are_newest_first_and_continue_after_a_removed_job() {
    testing::reset(serde_json::json!({}));
    let jobs = Jobs::<bool>::new("jobs");
    for (id, time) in [("d", 10), ("a", 9), ("c", 9), ("b", 100)] {
        with(&jobs, id, time, id != "c", true);
    }
    let page = |cursor: Option<&str>, limit| jobs.page(cursor, limit, |_| true, Job::shown);
    let first = page(None, 2).unwrap();
    assert_eq!(ids(&first), ["b", "d"]);
    let all_but_one = jobs.page(None, 10, |job| job.work, Job::shown).unwrap();
    assert_eq!((ids(&all_but_one), &all_but_one.next_cursor), (vec!["b", "d", "a"], &None));
    let mut batch = Batch::new();
    jobs.delete(&mut batch, &jobs.get("d").unwrap());
    batch.apply().unwrap();
    let rest = page(first.next_cursor.as_deref(), 2).unwrap();
    assert_eq!((ids(&rest), &rest.next_cursor), (vec!["a", "c"], &None));
    assert!(matches!(page(Some("nonsense"), 2), Err(Error::InvalidRequest(_))));
}

#[test]
fn a_page_reads_a_limited_number_of_jobs() {
    testing::reset(serde_json::json!({}));
    let jobs = Jobs::<bool>::new("jobs");
    with(&jobs, "wanted", 1, true, true);
    for number in 0..LOOKED_AT as u64 {
        with(&jobs, &format!("other-{number}"), 2 + number, false, true);
    }
    let first = jobs.page(None, 5, |job| job.work, Job::shown).unwrap();
    assert!(first.jobs.is_empty());
    let second = jobs.page(first.next_cursor.as_deref(), 5, |job| job.work, Job::shown).unwrap();
    assert_eq!((ids(&second), &second.next_cursor), (vec!["wanted"], &None));
}

#[test]
fn one_job_waits_until_it_has_ended_or_is_too_old() {
    testing::reset(serde_json::json!({}));
    let jobs = Jobs::<()>::new("jobs");
    let leave = |seconds| jobs.leave_one(at(seconds), (), 2).unwrap().id;
    let first = leave(1);
    assert_eq!(leave(3_600), first);
    let mut job = jobs.get(&first).unwrap();
    job.succeed(at(3_600));
    jobs.put(&job).unwrap();
    let second = leave(1);
    assert_ne!(second, first, "an id is used once, although the clock stood still");
    let mut job = jobs.get(&second).unwrap();
    job.go_on(at(3_600));
    jobs.put(&job).unwrap();
    assert_eq!(leave(7_199), second, "it goes on for less than an hour");
    let third = leave(7_200);
    assert_eq!(jobs.get(&second).unwrap().state, State::Cancelled);
    let mut job = jobs.get(&third).unwrap();
    job.succeed(at(7_200));
    jobs.put(&job).unwrap();
    leave(7_201);
    assert!(jobs.find(&first).unwrap().is_none(), "two stay beside the one that waits");
    assert!(jobs.find(&second).unwrap().is_some());
}
