//! How much memory an event keeps while it is in the feed, about.

use super::HostEvent;
use memhost_types::{Job, Operation, RecordHandle, Usage};

/// What an event has whatever is in it, in bytes. Ids and times are in it.
const BASE: usize = 2 * 1024;

pub(super) fn weight(happened: &HostEvent) -> usize {
    BASE + match happened {
        HostEvent::Operation(operation) => of_operation(operation),
        HostEvent::Job(job) => of_job(job),
        HostEvent::Budget(_) | HostEvent::Plugin(_) | HostEvent::Reset => 0,
    }
}

fn of_operation(operation: &Operation) -> usize {
    let handles = operation.records.iter().chain(&operation.cited).map(of_handle);
    let jobs = operation
        .jobs
        .iter()
        .map(|job| 256 + job.provider_job_id.len() + job.error.as_ref().map_or(0, String::len));
    let texts = [
        operation.error.as_ref().map(|error| &error.message),
        operation.source.as_ref().and_then(|source| source.external_ref.as_ref()),
        operation.source.as_ref().and_then(|source| source.document_key.as_ref()),
    ];
    handles.sum::<usize>()
        + jobs.sum::<usize>()
        + operation.usage.len() * (size_of::<Usage>() + 256)
        + operation.cost_event_ids.len() * 16
        + texts.into_iter().flatten().map(String::len).sum::<usize>()
}

fn of_job(job: &Job) -> usize {
    let handles: usize = job.records.iter().map(of_handle).sum();
    job.provider_job_id.len() + job.error.as_ref().map_or(0, String::len) + handles
}

fn of_handle(handle: &RecordHandle) -> usize {
    size_of::<RecordHandle>()
        + handle.provider_record_id.as_str().len()
        + handle.provider_key.as_str().len()
}
