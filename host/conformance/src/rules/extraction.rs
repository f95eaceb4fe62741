//! Rules of `extraction`: the jobs of a capture of residue.

use std::collections::BTreeSet;

use super::query::has;
use crate::material::text;
use crate::rule::{Rule, optional, rules, types};
use crate::subject::Subject;
use crate::verdict::{Stop, Verdict, failed, holds, skipped};
use memhost_sandbox::{JobAnswer, OptionalInterface};
use memhost_types::{CaptureMode, Exception, ExtractionJob, JobStatus, OperationId, RecordHandle};

/// The most runs of a job that stays unfinished.
const MOST_RUNS: usize = 20;

pub(super) const RULES: &[Rule] = rules! { Some(OptionalInterface::Extraction);
    "EXT-01" "Jobs can be looked up"
        "`get-job` knows each job that a capture answered, also on a fresh instance."
        optional(
            "get-job",
            "The job as it stands, without working on it: for providers whose jobs run elsewhere.",
        )
        => binding(known);
    "EXT-02" "A job has its effect once"
        "The suite runs a job again that succeeded. It answers the same records, and the list is \
         unchanged."
        optional(
            "run-job",
            "Write what the job makes and that it is done in one batch: then it happens once.",
        )
        => binding(once);
    "EXT-03" "The records of a job exist"
        "`get-record` returns each record that `run-job` answers, unless the record waits for \
         review."
        types(
            "extraction-job.record-count",
            "How many records the job made, known once it succeeded.",
        )
        => binding(records_exist);
    "EXT-04" "Asking about a job does not work on it"
        "The suite calls `get-job` three times for a queued job. The job stays queued, and no \
         record appears."
        optional(
            "get-job",
            "The job as it stands, without working on it: for providers whose jobs run elsewhere.",
        )
        => binding(asking);
    "EXT-05" "A job that has ended does not change"
        "`cancel-job` of a job that succeeded answers the job unchanged, and so does `get-job` \
         afterwards."
        optional(
            "cancel-job",
            "Cancelling a job that has ended changes nothing and answers it as it is.",
        )
        => binding(ended);
    "EXT-06" "The same event leaves the same job"
        "The suite delivers a capture of residue again with the same `operation-id`. It answers \
         the same job."
        types("extraction-job.provider-job-id",
            "Unique within the binding, for ever: a job that comes with an id that the host knows \
             is that job.")
        => binding(same_job).unless(Exception::IdempotentCaptures);
    "EXT-07" "A job says how many records it made"
        "A job that succeeded has a `record-count` that equals the number of its records."
        types(
            "extraction-job.record-count",
            "How many records the job made, known once it succeeded.",
        )
        => binding(count);
    "EXT-08" "A job that can be tried again is queued again"
        "The suite cancels a queued job. If the job then says `is-retryable`, `retry-job` answers \
         it as queued, and it \
         runs to its end. If not, the rule is skipped."
        optional("retry-job",
            "Puts a job that is `failed` or `cancelled` back to `queued`, or to `running` where it \
             runs elsewhere, under \
             the same id.")
        => binding(retried);
    "EXT-09" "A job that has ended tells what it made"
        "After a job has succeeded, `get-job` answers the records that its runs answered."
        optional("extraction.get-job",
            "Once it has ended, `records` and `usage` are those of the whole job, as `run-job` \
             answers them.")
        => binding(told);
};

/// A queued job of a capture.
async fn queued(subject: &Subject, id: OperationId) -> Result<ExtractionJob, Stop> {
    let mut request = subject.capture_of(&text(0), CaptureMode::CaptureResidue);
    request.hook = Some(subject.hook("2026-01-02T03:04:05Z")?);
    let jobs = subject.capture(id, &request).await?.jobs;
    match jobs.into_iter().find(|job| job.status == JobStatus::Queued) {
        Some(job) => Ok(job),
        None => skipped("a capture of residue leaves no job for the host to run"),
    }
}

/// Runs a job to its end.
async fn ran(
    subject: &Subject,
    job: &ExtractionJob,
) -> Result<(ExtractionJob, Vec<RecordHandle>), Stop> {
    let mut records = Vec::new();
    for _ in 0..MOST_RUNS {
        let answer = subject.run_job(&job.provider_job_id).await?;
        records.extend(answer.records);
        match answer.job {
            Some(job) if job.status == JobStatus::Succeeded => return Ok((job, records)),
            Some(job) if matches!(job.status, JobStatus::Queued | JobStatus::Running) => {}
            Some(job) => {
                return failed(format!(
                    "the job ended as {:?}: {}",
                    job.status,
                    job.error.unwrap_or_default()
                ));
            }
            None => return failed("`run-job` answers no job"),
        }
    }
    skipped(format!("the job does not end within {MOST_RUNS} calls"))
}

async fn known(subject: &Subject) -> Verdict {
    let job = queued(subject, subject.operation()).await?;
    for instances in [&subject.beside().await?, subject] {
        let JobAnswer { job: found, .. } = instances.get_job(&job.provider_job_id).await?;
        holds(found.is_some(), || format!("`get-job` does not know `{}`", job.provider_job_id))?;
    }
    Ok(())
}

async fn once(subject: &Subject) -> Verdict {
    let job = queued(subject, subject.operation()).await?;
    let (_, records) = ran(subject, &job).await?;
    let before = subject.list(subject.scope()).await?.len();
    let again = subject.run_job(&job.provider_job_id).await?.records;
    let after = subject.list(subject.scope()).await?.len();
    holds(before == after, || format!("{before} records before the second run, {after} after"))?;
    // The second answer may have the same records or none.
    let strange = again.iter().find(|handle| !records.contains(handle));
    holds(strange.is_none(), || format!("the second run answers other records: {strange:?}"))
}

async fn records_exist(subject: &Subject) -> Verdict {
    let job = queued(subject, subject.operation()).await?;
    let (_, records) = ran(subject, &job).await?;
    for handle in records {
        let is_there = subject.get(subject.scope(), &handle).await?.is_some()
            || subject.interfaces.contains(&OptionalInterface::Review)
                && has(&subject.pending(&subject.scope()).await?, &handle);
        holds(is_there, || {
            format!(
                "`get-record` has no `{}`, and the record does not wait for review",
                handle.provider_record_id
            )
        })?;
    }
    Ok(())
}

async fn asking(subject: &Subject) -> Verdict {
    let job = queued(subject, subject.operation()).await?;
    for _ in 0..3 {
        let found = subject.get_job(&job.provider_job_id).await?.job;
        let status = found.map(|job| job.status);
        holds(status == Some(JobStatus::Queued), || format!("its status is {status:?}"))?;
    }
    let listed = subject.list(subject.scope()).await?.len();
    holds(listed == 0, || format!("{listed} records appeared"))
}

async fn ended(subject: &Subject) -> Verdict {
    let job = queued(subject, subject.operation()).await?;
    ran(subject, &job).await?;
    for answer in [
        subject.cancel_job(&job.provider_job_id).await?,
        subject.get_job(&job.provider_job_id).await?,
    ] {
        let status = answer.job.map(|job| job.status);
        holds(status == Some(JobStatus::Succeeded), || format!("its status is {status:?}"))?;
    }
    Ok(())
}

async fn same_job(subject: &Subject) -> Verdict {
    let id = subject.operation();
    let first = queued(subject, id).await?;
    let mut request = subject.capture_of(&text(0), CaptureMode::CaptureResidue);
    request.hook = Some(subject.hook("2026-01-02T03:04:05Z")?);
    let again = subject.capture(id, &request).await?.jobs;
    let strange = again.iter().find(|job| job.provider_job_id != first.provider_job_id);
    match strange {
        None => Ok(()),
        Some(job) => failed(format!(
            "the first delivery answers `{}`, the second `{}`",
            first.provider_job_id, job.provider_job_id
        )),
    }
}

async fn count(subject: &Subject) -> Verdict {
    let job = queued(subject, subject.operation()).await?;
    let (job, records) = ran(subject, &job).await?;
    let counted = job.record_count.map(|count| count as usize);
    holds(counted == Some(records.len()), || {
        format!("`record-count` is {counted:?}, but there are {}", records.len())
    })
}

async fn retried(subject: &Subject) -> Verdict {
    let job = queued(subject, subject.operation()).await?;
    let cancelled = subject.cancel_job(&job.provider_job_id).await?.job;
    if !cancelled.is_some_and(|job| job.is_retryable) {
        return skipped("a cancelled job is not `is-retryable`");
    }
    let again = subject.retry_job(&job.provider_job_id).await?.job;
    let status = again.map(|job| job.status);
    holds(matches!(status, Some(JobStatus::Queued | JobStatus::Running)), || {
        format!("its status is {status:?}")
    })?;
    ran(subject, &job).await.map(drop)
}

async fn told(subject: &Subject) -> Verdict {
    let job = queued(subject, subject.operation()).await?;
    let names = |handles: Vec<RecordHandle>| -> BTreeSet<String> {
        handles.into_iter().map(|handle| handle.provider_record_id.to_string()).collect()
    };
    let made = names(ran(subject, &job).await?.1);
    let told = names(subject.get_job(&job.provider_job_id).await?.records);
    holds(told == made, || {
        format!("`run-job` answered {} records, `get-job` answers {}", made.len(), told.len())
    })
}
