//! Rules of `upsert-records`.

use crate::material::{clip, text};
use crate::rule::{Rule, provider, rules, types};
use crate::subject::{Subject, answered};
use crate::verdict::{Verdict, failed, holds, skipped};
use memhost_sandbox::CallError;
use memhost_types::{Exception, ProviderError, RecordWrite, SourceRef, limits};

const AS_THEY_ARE: &str = "Writes records as they are: no extraction, no merging.";
const ID: &str =
    "Some: that record is replaced as a whole, or made under this very id if it does not exist.";

pub(super) const RULES: &[Rule] = rules! { None;
    "UPS-01" "Ids are in the order of the records"
        "The suite writes three records in one call. Each id belongs to the text in its place."
        provider("upsert-response.records", "One id for each record of the request, in its order.")
        => binding(order);
    "UPS-02" "A given id is used"
        "A record with an id is created under this id."
        types("record-write.id", ID)
        => binding(given_id);
    "UPS-03" "A record is replaced as a whole"
        "The suite writes a record with a summary again, under its id and without a summary. The \
         text is new, and the \
         summary is gone."
        types("record-write.id", ID)
        => binding(replaced);
    "UPS-04" "The same id twice is one record"
        "The suite writes a record three times under one id. The list has it once."
        provider("upsert-records", "writing a record under a given id twice leaves one record.")
        => binding(twice);
    "UPS-05" "All records are written or none"
        "A batch is refused because of one record (an id of another partition, a long text, or too \
         many records). None \
         of the others exists."
        provider("upsert-records", "All records or none are written.")
        => binding(all_or_none).unless(Exception::AllOrNoneUpserts);
    "UPS-06" "A text comes back unchanged"
        "Texts with line breaks, blanks at the end, several scripts and markup come back byte for \
         byte."
        provider("upsert-records", AS_THEY_ARE)
        => binding(texts);
    "UPS-07" "Metadata and summary come back"
        "Every member of a record's metadata comes back with its value, and so does the summary. \
         The provider may add \
         members."
        provider("upsert-records", AS_THEY_ARE)
        => binding(metadata);
    "UPS-08" "A written record keeps its source"
        "The source of an upsert comes back with its record, with every field."
        types("source-ref", "Kept with a record and returned with it unchanged.")
        => binding(source);
    "UPS-09" "A long text is stored whole or refused"
        "Texts of 64 KiB and of 1 MiB come back whole, or are refused."
        types("types", "a record's text at most 1 MiB")
        => binding(long_texts).thorough();
    "UPS-10" "A record's own source comes before the request's"
        "The suite writes two records in one call that has a source; one of them has a source of \
         its own. Each comes \
         back with its source."
        types("record-write.source", "None: the source of the request, if it has one.")
        => binding(own_source);
};

/// The message about a source that differs from the given one.
pub(super) fn other_source(given: &SourceRef, found: Option<&SourceRef>) -> String {
    let json = |source| serde_json::to_string(source).unwrap_or_default();
    match found {
        None => format!("no source; {} was given", json(given)),
        Some(found) => format!("{}; {} was given", json(found), json(given)),
    }
}

async fn order(subject: &Subject) -> Verdict {
    let handles =
        subject.put_all(subject.scope(), (0..3).map(|n| subject.write(&text(n))).collect()).await?;
    for (n, handle) in handles.iter().enumerate() {
        let found = subject.got(handle).await?.text;
        holds(found == text(n), || {
            format!("the text in place {n} is {}, but {} was written", clip(&found), clip(&text(n)))
        })?;
    }
    Ok(())
}

async fn given_id(subject: &Subject) -> Verdict {
    let id = subject.name("given");
    let handles = subject.put_all(subject.scope(), vec![subject.write_as(&id, &text(0))]).await?;
    let found: Vec<&str> =
        handles.iter().map(|handle| handle.provider_record_id.as_str()).collect();
    holds(found == [id.as_str()], || format!("`{id}` was given, but {found:?} was answered"))?;
    subject.got(&subject.handle(&id)?).await.map(drop)
}

async fn replaced(subject: &Subject) -> Verdict {
    let id = subject.name("replaced");
    let first = RecordWrite {
        summary: Some("What it was about".to_owned()),
        ..subject.write_as(&id, &text(0))
    };
    subject.put_all(subject.scope(), vec![first]).await?;
    let handles = subject.put_all(subject.scope(), vec![subject.write_as(&id, &text(1))]).await?;
    for handle in handles {
        let found = subject.got(&handle).await?;
        holds(found.text == text(1), || format!("the text is {}", clip(&found.text)))?;
        holds(found.summary.is_none(), || format!("the summary is still {:?}", found.summary))?;
    }
    Ok(())
}

async fn twice(subject: &Subject) -> Verdict {
    let id = subject.name("twice");
    for n in 0..3 {
        subject.put_all(subject.scope(), vec![subject.write_as(&id, &text(n))]).await?;
    }
    let all = subject.list(subject.scope()).await?;
    holds(all.len() == 1, || format!("{} records", all.len()))
}

async fn all_or_none(subject: &Subject) -> Verdict {
    let foreign = subject.name("foreign");
    subject.put_all(subject.other_agent(), vec![subject.write_as(&foreign, &text(9))]).await?;
    let mut many: Vec<RecordWrite> = (12..112).map(|n| subject.write(&text(n))).collect();
    many.truncate(100);
    let batches = [
        vec![
            subject.write(&text(0)),
            subject.write_as(&foreign, &text(1)),
            subject.write(&text(2)),
        ],
        vec![
            subject.write(&text(3)),
            subject.write(&text(4).repeat(1_600)),
            subject.write(&text(5)),
        ],
        many,
    ];
    for batch in batches {
        let texts: Vec<String> = batch.iter().map(|record| record.text.clone()).collect();
        let Err(error) = subject.upsert(subject.scope(), None, batch).await else { continue };
        let there = subject.list(subject.scope()).await?;
        let left: Vec<String> = there
            .iter()
            .filter(|found| texts.contains(&found.text))
            .map(|f| clip(&f.text))
            .collect();
        return holds(left.is_empty(), || {
            format!("the batch was refused ({error}), but the list has {}", left.join(", "))
        });
    }
    skipped("it accepts every batch that was tried")
}

async fn texts(subject: &Subject) -> Verdict {
    let texts = [
        "First line\nsecond line\n\n  indented\tand tabbed  ",
        "# A heading\n---\n- *one* item\n",
        "Grüße aus Zürich, 標識, تجربة, 🦀, e\u{301}",
        "  <b>\"quoted\" & 'escaped'</b> \\n {{braces}} ",
    ];
    let mut taken = 0;
    for written in texts {
        let handles =
            match subject.upsert(subject.scope(), None, vec![subject.write(written)]).await {
                // A provider may refuse a text.
                Err(CallError::Provider(ProviderError::InvalidRequest { .. })) => continue,
                outcome => answered("upsert-records", outcome)?,
            };
        for handle in handles {
            taken += 1;
            let found = subject.got(&handle).await?.text;
            holds(found == written, || format!("{} came back as {}", clip(written), clip(&found)))?;
        }
    }
    if taken == 0 { skipped("it refuses every text that was tried") } else { Ok(()) }
}

async fn metadata(subject: &Subject) -> Verdict {
    let mut metadata = (*subject.metadata).clone();
    metadata.insert(
        "check".to_owned(),
        serde_json::json!({ "list": [1, 2.5, null, "x"], "yes": true }),
    );
    let summary = Some("What it is about".to_owned());
    let record = RecordWrite {
        summary: summary.clone(),
        metadata: Some(metadata.clone()),
        ..subject.write(&text(6))
    };
    for handle in subject.put_all(subject.scope(), vec![record]).await? {
        let found = subject.got(&handle).await?;
        let kept = found.metadata.unwrap_or_default();
        if let Some((name, value)) =
            metadata.iter().find(|(name, value)| kept.get(*name) != Some(value))
        {
            return failed(format!("`{name}` was {value} and is {:?}", kept.get(name)));
        }
        holds(found.summary == summary, || format!("the summary is {:?}", found.summary))?;
    }
    Ok(())
}

async fn source(subject: &Subject) -> Verdict {
    let source = subject.source();
    let written =
        subject.upsert(subject.scope(), Some(source.clone()), vec![subject.write(&text(7))]).await;
    for handle in answered("upsert-records", written)? {
        let found = subject.got(&handle).await?.source;
        holds(found.as_ref() == Some(&source), || other_source(&source, found.as_ref()))?;
    }
    Ok(())
}

async fn long_texts(subject: &Subject) -> Verdict {
    let mut taken = 0;
    for bytes in [64 << 10, limits::MAX_TEXT_BYTES] {
        let mut long = text(8).repeat(bytes / text(8).len() + 1);
        long.truncate(bytes);
        // The provider may limit texts.
        let Ok(handles) = subject.upsert(subject.scope(), None, vec![subject.write(&long)]).await
        else {
            continue;
        };
        for handle in handles {
            taken += 1;
            let found = subject.got(&handle).await?.text;
            holds(found == long, || {
                format!("{bytes} bytes were written, but {} were returned", found.len())
            })?;
        }
    }
    if taken == 0 { skipped("it refuses texts of 64 KiB") } else { Ok(()) }
}

async fn own_source(subject: &Subject) -> Verdict {
    let shared = subject.source();
    let own = SourceRef { comment_id: Some(subject.name("other-comment")), ..shared.clone() };
    let records = vec![
        RecordWrite { source: Some(own.clone()), ..subject.write(&text(0)) },
        subject.write(&text(1)),
    ];
    let handles = answered(
        "upsert-records",
        subject.upsert(subject.scope(), Some(shared.clone()), records).await,
    )?;
    for (handle, given) in handles.iter().zip([own, shared]) {
        let found = subject.got(handle).await?.source;
        holds(found.as_ref() == Some(&given), || other_source(&given, found.as_ref()))?;
    }
    Ok(())
}
