//! Rules of `list-records`.

use super::query::has;
use crate::material::text;
use crate::rule::{Rule, provider, rules, types};
use crate::subject::Subject;
use crate::verdict::{Stop, Verdict, failed, holds};
use memhost_types::{Exception, ListRequest, Pages, RecordHandle, RecordWrite, Snippet};

const EXACTLY_ONCE: &str =
    "a record that exists from the first page to the last is returned exactly once.";

pub(super) const RULES: &[Rule] = rules! { None;
    "LST-01" "A list has each record once"
        "The suite lists eleven records in pages of four. Each appears exactly once, and a list of \
         an empty scope is \
         empty."
        provider("list-records", EXACTLY_ONCE)
        => binding(complete).unless(Exception::ExactlyOnceLists);
    "LST-02" "A list is complete while others write"
        "Between the pages of a list, the suite writes one record, forgets one and replaces one. \
         Each other record \
         appears exactly once."
        provider("list-records", EXACTLY_ONCE)
        => binding(while_others_write).unless(Exception::ExactlyOnceLists);
    "LST-03" "A page has at most the requested number of items"
        "A page with the limit 2 of five records has at most two."
        provider("list-request.limit", "1 to 1,000: at most this many items.")
        => binding(limit);
    "LST-04" "A list can be filtered"
        "A list with a metadata filter has the records whose metadata has the member, and no \
         others."
        types("query-request.metadata-filter",
            "An object: a record matches if its metadata has every member of it with an equal \
             value.")
        => binding(filter);
    "LST-05" "A long list has each record once"
        "The suite lists three hundred records in pages of 37. Each appears exactly once."
        provider("list-records", EXACTLY_ONCE)
        => binding(long).thorough().unless(Exception::ExactlyOnceLists);
};

async fn written(subject: &Subject, count: usize) -> Result<Vec<RecordHandle>, Stop> {
    let mut handles = Vec::new();
    for begin in (0..count).step_by(50) {
        let records = (begin..count.min(begin + 50)).map(|n| subject.write(&text(n))).collect();
        handles.extend(subject.put_all(subject.scope(), records).await?);
    }
    Ok(handles)
}

/// Fails unless the items have each record once.
fn once(handles: &[RecordHandle], items: &[Snippet]) -> Verdict {
    for handle in handles {
        let times = items.iter().filter(|item| item.handle == *handle).count();
        holds(times == 1, || {
            format!("the list has `{}` {times} times", handle.provider_record_id)
        })?;
    }
    Ok(())
}

async fn complete(subject: &Subject) -> Verdict {
    let empty = subject.list(subject.scope()).await?.len();
    holds(empty == 0, || format!("{empty} items, but nothing was written"))?;
    let handles = written(subject, 11).await?;
    let items = subject.list_of(&subject.listing(subject.scope(), 4)).await?;
    once(&handles, &items)?;
    holds(items.len() == handles.len(), || {
        format!("{} items of {} records", items.len(), handles.len())
    })
}

async fn while_others_write(subject: &Subject) -> Verdict {
    let handles = written(subject, 12).await?;
    let passing = &handles[4..6];
    let request = subject.listing(subject.scope(), 3);
    let (mut items, mut list, mut pages) = (Vec::new(), Pages::default(), 0);
    while let Some(cursor) = list.next() {
        let (page, next) = subject.page(&request, cursor).await?;
        items.extend(page);
        if next.is_none() {
            break;
        }
        list.go_on(next);
        pages += 1;
        holds(pages < 100, || "the list does not end".to_owned())?;
        subject.put(subject.scope(), &text(20 + pages)).await?;
        if let Some(handle) = passing.get(pages - 1) {
            subject.forget(subject.scope(), std::slice::from_ref(handle)).await?;
        }
        let id = handles[0].provider_record_id.as_str();
        subject.put_all(subject.scope(), vec![subject.write_as(id, &text(40 + pages))]).await?;
    }
    let standing: Vec<RecordHandle> =
        handles.iter().filter(|handle| !passing.contains(handle)).cloned().collect();
    once(&standing, &items)
}

async fn limit(subject: &Subject) -> Verdict {
    written(subject, 5).await?;
    let (page, _) = subject.page(&subject.listing(subject.scope(), 2), None).await?;
    holds(page.len() <= 2 && !page.is_empty(), || format!("{} items for a limit of 2", page.len()))
}

async fn filter(subject: &Subject) -> Verdict {
    let record = |n, team| RecordWrite {
        metadata: subject.metadata_with("team", team),
        ..subject.write(&text(n))
    };
    let records =
        vec![record(0, "north"), record(1, "south"), record(2, "north"), subject.write(&text(3))];
    let handles = subject.put_all(subject.scope(), records).await?;
    let filter = serde_json::json!({ "team": "north" }).as_object().cloned();
    let items = subject
        .list_of(&ListRequest { metadata_filter: filter, ..subject.listing(subject.scope(), 10) })
        .await?;
    for (n, handle) in handles.iter().enumerate() {
        if has(&items, handle) != matches!(n, 0 | 2) {
            return failed(format!(
                "`{}` is {}among them",
                text(n),
                if matches!(n, 0 | 2) { "not " } else { "" }
            ));
        }
    }
    Ok(())
}

async fn long(subject: &Subject) -> Verdict {
    let handles = written(subject, 300).await?;
    once(&handles, &subject.list_of(&subject.listing(subject.scope(), 37)).await?)
}
