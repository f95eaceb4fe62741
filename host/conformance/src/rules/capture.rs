//! Rules of `capture`.

use crate::material::{clip, text};
use crate::rule::{Rule, provider, rules, types};
use crate::subject::{Subject, answered};
use crate::verdict::{Stop, Verdict, failed, holds, skipped};
use memhost_sandbox::CallError;
use memhost_types::{
    CaptureMode, CaptureRequest, Exception, HookContext, HookKind, OperationId, ProviderError,
    RecordHandle, SourcePayload, Turn,
};

const ONCE: &str = "the same `operation-id` must not make a second record, and nothing else makes \
                    two captures one.";

pub(super) const RULES: &[Rule] = rules! { None;
    "CAP-01" "The records that a capture answers exist"
        "`get-record` returns each record that `capture` answers."
        provider(
            "capture-response.records",
            "The records that exist because of this capture, new or changed.",
        )
        => binding(exists);
    "CAP-02" "The same operation is captured once"
        "The suite delivers a capture three times with the same `operation-id`. The list has as \
         many records as after \
         the first."
        provider("capture", ONCE)
        => binding(same_operation).unless(Exception::IdempotentCaptures);
    "CAP-04" "A captured record contains the payload"
        "In the mode `capture-record`, one of the records contains the payload's text."
        provider("capture-mode.capture-record", "The payload is itself the record to keep.")
        => binding(keeps_payload);
    "CAP-05" "Only providers that announce jobs answer jobs"
        "Captures in both modes answer no job unless `describe` says `async-extraction`."
        provider("capture-response.jobs", "Empty unless `capabilities.async-extraction`.")
        => binding(announced);
    "CAP-06" "Captures may arrive late"
        "The suite delivers two captures of one source in reverse order of time. Both are accepted."
        provider("capture",
            "captures of one source may arrive out of order; `hook.triggered-at` says when things \
             happened.")
        => binding(late);
    "CAP-07" "An unknown hook kind counts as a manual capture"
        "A capture with an unknown hook kind is accepted."
        types("hook-kind", "a provider that does not know one treats it as `manual-capture`.")
        => binding(unknown_kind);
    "CAP-08" "A payload may be an object"
        "A capture whose payload has an object and no text gets an answer; `unsupported` and \
         `invalid-request` are \
         allowed."
        types("source-payload", "a text, a structured object, a conversation, or several of them.")
        => binding(object_only);
    "CAP-09" "A captured record keeps its source"
        "The source of a capture comes back with its record, with every field."
        types("source-ref", "Kept with a record and returned with it unchanged.")
        => binding(source);
    "CAP-10" "Another operation is another event"
        "The suite captures two texts with different operation ids and equal hooks. Each becomes a \
         record of its own. \
         The same two again change nothing."
        provider("capture", ONCE)
        => binding(other_operation);
    "CAP-11" "A payload may be a conversation"
        "A capture of a payload that has turns and no text gets an answer. The text of a record of \
         it has what each turn says."
        types(
            "source-payload.turns",
            "A conversation, in the order in which it was said; empty: it is none.",
        )
        => binding(turns);
};

/// Captures a text and answers the records that exist at once.
async fn captured(
    subject: &Subject,
    request: &CaptureRequest,
    id: OperationId,
) -> Result<Vec<RecordHandle>, Stop> {
    let answer = subject.capture(id, request).await?;
    match answer.records.is_empty() {
        true => skipped("`capture` creates no record at once"),
        false => Ok(answer.records),
    }
}

async fn exists(subject: &Subject) -> Verdict {
    for mode in [CaptureMode::CaptureRecord, CaptureMode::CaptureResidue] {
        let answer =
            subject.capture(subject.operation(), &subject.capture_of(&text(0), mode)).await?;
        for handle in answer.records {
            subject.got(&handle).await?;
        }
    }
    Ok(())
}

/// Delivers a capture once under each of the ids.
async fn once(subject: &Subject, request: &CaptureRequest, ids: [OperationId; 3]) -> Verdict {
    let mut counts = Vec::new();
    for id in ids {
        subject.capture(id, request).await?;
        counts.push(subject.list(subject.scope()).await?.len());
    }
    holds(counts.first() == counts.last(), || {
        format!("{} records after the first delivery, {} after the third", counts[0], counts[2])
    })
}

async fn same_operation(subject: &Subject) -> Verdict {
    for mode in [CaptureMode::CaptureRecord, CaptureMode::CaptureResidue] {
        let id = subject.operation();
        once(subject, &subject.capture_of(&text(0), mode), [id; 3]).await?;
    }
    Ok(())
}

async fn other_operation(subject: &Subject) -> Verdict {
    let hook = subject.hook("2026-01-02T03:04:05Z")?;
    let events: Vec<(OperationId, CaptureRequest)> = (0..2)
        .map(|n| {
            let request = subject.capture_of(&text(n), CaptureMode::CaptureRecord);
            (subject.operation(), CaptureRequest { hook: Some(hook.clone()), ..request })
        })
        .collect();
    let mut made = Vec::new();
    for round in 0..2 {
        for (number, (id, request)) in events.iter().enumerate() {
            let records = captured(subject, request, *id).await?;
            if round == 0 {
                let known = records.iter().find(|handle| made.contains(*handle));
                holds(known.is_none(), || {
                    format!("capture {} answers the records of the one before", number + 1)
                })?;
                made.extend(records);
            }
        }
        let listed = subject.list(subject.scope()).await?.len();
        holds(listed == made.len(), || {
            format!("{listed} records are listed; the captures answered {}", made.len())
        })?;
    }
    Ok(())
}

async fn keeps_payload(subject: &Subject) -> Verdict {
    let request = subject.capture_of(&text(1), CaptureMode::CaptureRecord);
    let mut seen = Vec::new();
    for handle in captured(subject, &request, subject.operation()).await? {
        let record = subject.got(&handle).await?;
        if record.text.contains(&text(1)) {
            return Ok(());
        }
        seen.push(clip(&record.text));
    }
    failed(format!("{} was captured, but the records are {}", clip(&text(1)), seen.join(", ")))
}

async fn announced(subject: &Subject) -> Verdict {
    if subject.description.capabilities.async_extraction {
        return Ok(());
    }
    for mode in [CaptureMode::CaptureRecord, CaptureMode::CaptureResidue] {
        let answer =
            subject.capture(subject.operation(), &subject.capture_of(&text(2), mode)).await?;
        holds(answer.jobs.is_empty(), || {
            format!("{} jobs, but no `async-extraction`", answer.jobs.len())
        })?;
    }
    Ok(())
}

async fn late(subject: &Subject) -> Verdict {
    for (number, at) in [(0, "2026-03-02T12:00:00Z"), (1, "2026-03-01T12:00:00Z")] {
        let mut request = subject.capture_of(&text(number), CaptureMode::CaptureRecord);
        request.hook = Some(subject.hook(at)?);
        for handle in subject.capture(subject.operation(), &request).await?.records {
            subject.got(&handle).await?;
        }
    }
    Ok(())
}

async fn unknown_kind(subject: &Subject) -> Verdict {
    let mut request = subject.capture_of(&text(3), CaptureMode::CaptureRecord);
    let hook = subject.hook("2026-03-01T12:00:00Z")?;
    request.hook =
        Some(HookContext { hook_kind: HookKind::Other("sprint_closed".to_owned()), ..hook });
    subject.capture(subject.operation(), &request).await.map(drop)
}

async fn object_only(subject: &Subject) -> Verdict {
    let object = serde_json::json!({ "title": text(4), "labels": ["one", "two"], "estimate": 3 });
    let mut request = subject.capture_of("", CaptureMode::CaptureRecord);
    request.payload =
        SourcePayload { object: object.as_object().cloned(), ..SourcePayload::default() };
    match subject.try_capture(subject.operation(), &request).await {
        Err(CallError::Provider(ProviderError::InvalidRequest { .. })) => Ok(()),
        outcome => match answered("capture", outcome) {
            Err(Stop::Failed(saw)) => failed(saw),
            _ => Ok(()),
        },
    }
}

async fn source(subject: &Subject) -> Verdict {
    let request = subject.capture_of(&text(5), CaptureMode::CaptureRecord);
    for handle in captured(subject, &request, subject.operation()).await? {
        let found = subject.got(&handle).await?.source;
        holds(found.as_ref() == Some(&request.source), || {
            super::upsert::other_source(&request.source, found.as_ref())
        })?;
    }
    Ok(())
}

async fn turns(subject: &Subject) -> Verdict {
    let turn = |role: &str, n| Turn { role: role.to_owned(), text: text(n), ..Turn::default() };
    let mut request = subject.capture_of("", CaptureMode::CaptureRecord);
    request.payload = SourcePayload {
        text: None,
        turns: vec![turn("user", 0), turn("assistant", 1)],
        ..request.payload
    };
    for handle in subject.capture(subject.operation(), &request).await?.records {
        let found = subject.got(&handle).await?.text;
        holds(found.contains(&text(0)) && found.contains(&text(1)), || {
            format!("the record says {}", clip(&found))
        })?;
    }
    Ok(())
}
