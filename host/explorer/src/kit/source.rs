//! Where a memory came from, in words and as links to Paperclip's own pages, and where a record's page is.

use maud::{Markup, html};

use super::view::View;
use memhost_types::{RecordHandle, SourceKind, SourceRef};

/// What something came from, in words: `Comment c1 on issue PAP-7`.
pub(crate) fn source_words(source: &SourceRef) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let of = |what: &str, id: &Option<String>| match id {
        Some(id) => format!("{what} {id}"),
        None => what.to_owned(),
    };
    let said = match source.kind {
        SourceKind::IssueComment => {
            format!("{} on {}", of("Comment", &source.comment_id), of("issue", &source.issue_id))
        }
        SourceKind::IssueDocument => {
            format!("{} of {}", of("Document", &source.document_key), of("issue", &source.issue_id))
        }
        SourceKind::Issue => of("Issue", &source.issue_id),
        SourceKind::Run => of("Run", &source.run_id),
        SourceKind::Activity => of("Activity", &source.activity_id),
        SourceKind::ManualNote => "A note by hand".to_owned(),
        SourceKind::ExternalDocument => "A document from outside".to_owned(),
    };
    match text(&source.external_ref) {
        outside if outside.is_empty() => said,
        outside => format!("{said} ({outside})"),
    }
}

/// The same, as a link to the page of its run or issue where the host knows where these are.
pub(crate) fn source_link(view: &View, source: &SourceRef) -> Markup {
    let links = &view.explorer.links;
    let (template, id) = match (source.kind, &source.run_id, &source.issue_id) {
        (SourceKind::Run, Some(run), _) | (_, Some(run), None) => (links.run.as_ref(), Some(run)),
        (_, _, issue) => (links.issue.as_ref(), issue.as_ref()),
    };
    let address = template.zip(id).and_then(|(template, id)| template.address(&source.company_id, id));
    linked(address, &source_words(source))
}

/// An issue's id, as a link to its page where the host knows where that is.
pub(crate) fn issue_link(view: &View, id: &str) -> Markup {
    let template = &view.explorer.links.issue.as_ref().zip(view.company.as_ref());
    linked(template.and_then(|(template, company)| template.address(company, id)), id)
}

/// A run's id, as a link to its page where the host knows where that is.
pub(crate) fn run_link(view: &View, id: &str) -> Markup {
    let template = &view.explorer.links.run.as_ref().zip(view.company.as_ref());
    linked(template.and_then(|(template, company)| template.address(company, id)), id)
}

fn linked(address: Option<String>, text: &str) -> Markup {
    match address {
        Some(address) => html! { a href=(address) rel="noreferrer" { (text) } },
        None => html! { (text) },
    }
}

/// The address of a record's page: `/c/{company}/records/{bindingKey}/{providerRecordId}`.
pub(crate) fn record_link(view: &View, binding_key: &str, handle: &RecordHandle) -> String {
    view.at(&["records", binding_key, handle.provider_record_id.as_str()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_said_in_words() {
        let company: memhost_types::CompanyId = "acme".parse().unwrap();
        let mut comment = SourceRef::new(SourceKind::IssueComment, company.clone());
        assert_eq!(source_words(&comment), "Comment on issue");
        comment.issue_id = Some("PAP-7".to_owned());
        comment.comment_id = Some("c1".to_owned());
        assert_eq!(source_words(&comment), "Comment c1 on issue PAP-7");
        assert_eq!(source_words(&SourceRef::new(SourceKind::ManualNote, company)), "A note by hand");
    }
}
