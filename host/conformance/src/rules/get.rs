//! Rules of `get-record` and of the fields of every record.

use crate::material::text;
use crate::rule::{Rule, provider, rules, types};
use crate::subject::Subject;
use crate::verdict::{Verdict, failed};
use memhost_types::{RecordWrite, Snippet};

pub(super) const RULES: &[Rule] = rules! { None;
    "GET-01" "An unknown id is not an error"
        "`get-record` with an id that was never given answers none."
        provider("get-record", "One record, or none if it does not exist or belongs to another \
                                partition of the scope.")
        => binding(unknown);
    "GET-02" "Times are valid"
        "The times of a record, if it has some, are RFC 3339, and it was not changed before it was \
         created."
        types(
            "timestamp",
            "RFC 3339 in UTC with up to nanosecond digits, such as `2026-03-01T12:00:00Z`.",
        )
        => binding(times);
    "GET-03" "Metadata is an object"
        "The metadata of a record is a JSON object in every call that returns it."
        types("json", "Where the plan says `Record<string, unknown>` its top level is an object.")
        => binding(metadata);
};

async fn unknown(subject: &Subject) -> Verdict {
    subject.put(subject.scope(), &text(0)).await?;
    match subject.get(subject.scope(), &subject.handle("no-such-record")?).await? {
        None => Ok(()),
        Some(record) => failed(format!("it returns `{}`", record.handle.provider_record_id)),
    }
}

async fn times(subject: &Subject) -> Verdict {
    let handle = subject.put(subject.scope(), &text(1)).await?;
    // The host has refused texts that are not times already.
    let record = subject.got(&handle).await?;
    match (record.created_at, record.updated_at) {
        (Some(made), Some(changed)) if changed < made => {
            failed(format!("created at {made}, updated at {changed}"))
        }
        _ => Ok(()),
    }
}

async fn metadata(subject: &Subject) -> Verdict {
    let record =
        RecordWrite { metadata: subject.metadata_with("team", "north"), ..subject.write(&text(2)) };
    let handles = subject.put_all(subject.scope(), vec![record]).await?;
    let mut seen: Vec<Snippet> = Vec::new();
    for handle in &handles {
        seen.push(subject.got(handle).await?);
    }
    seen.extend(subject.list(subject.scope()).await?);
    subject.query(subject.scope(), &text(2)).await.map(drop)
}
