//! Links to records, operations, bindings, and to the issues and runs of a source.

use maud::{Markup, html};

use super::format::short_id;
use super::view::View;
use crate::link_template::LinkTemplate;
use memhost_types::{OperationId, RecordHandle, SourceKind, SourceRef};

/// A source in words: `Comment c1 on issue PAP-7`.
pub(crate) fn source_text(source: &SourceRef) -> String {
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
        SourceKind::ManualNote => "Manual note".to_owned(),
        SourceKind::ExternalDocument => "External document".to_owned(),
    };
    match text(&source.external_ref) {
        outside if outside.is_empty() => said,
        outside => format!("{said} ({outside})"),
    }
}

/// A source, with a link to its run or issue if the host has a link template.
pub(crate) fn source_link(view: &View, source: &SourceRef) -> Markup {
    let at = |template: &Option<LinkTemplate>, id: &Option<String>| {
        template
            .as_ref()
            .zip(id.as_ref())
            .and_then(|(template, id)| template.address(&source.company_id, id, None))
    };
    let links = &view.explorer.links;
    let (run, issue) = (at(&links.run, &source.run_id), at(&links.issue, &source.issue_id));
    let address = if source.kind == SourceKind::Run { run.or(issue) } else { issue.or(run) };
    linked(address, &source_text(source))
}

/// An issue id, with a link if the host has a link template.
pub(crate) fn issue_link(view: &View, id: &str) -> Markup {
    let template = &view.explorer.links.issue.as_ref().zip(view.company.as_ref());
    linked(template.and_then(|(template, company)| template.address(company, id, None)), id)
}

/// A run id, with a link if the host has a link template and, where that needs one, the agent is
/// known.
pub(crate) fn run_link(view: &View, id: &str, agent: Option<&str>) -> Markup {
    let template = &view.explorer.links.run.as_ref().zip(view.company.as_ref());
    linked(template.and_then(|(template, company)| template.address(company, id, agent)), id)
}

fn linked(address: Option<String>, text: &str) -> Markup {
    match address {
        Some(address) => html! { a href=(address) rel="noreferrer" { (text) } },
        None => html! { (text) },
    }
}

/// The address of a record's page: `/c/{company}/records/{bindingKey}/{providerRecordId}`.
pub(crate) fn record_path(view: &View, binding_key: &str, handle: &RecordHandle) -> String {
    view.at(&["records", binding_key, handle.provider_record_id.as_str()])
}

/// A link to an operation, with the end of its id.
pub(crate) fn operation_link(view: &View, id: OperationId) -> Markup {
    html! { a href=(view.at(&["operations", &id.to_string()])) { (short_id(id)) } }
}

/// A link to a binding.
pub(crate) fn binding_link(view: &View, key: &str) -> Markup {
    html! { a href=(view.at(&["bindings", key])) { (key) } }
}

/// A link to a record, with the end of its id.
pub(crate) fn record_link(view: &View, binding: &str, handle: &RecordHandle) -> Markup {
    let id = handle.provider_record_id.as_str();
    html! { a href=(record_path(view, binding, handle)) { code title=(id) { (ends(id)) } } }
}

/// The end of a long name.
fn ends(text: &str) -> String {
    match text.char_indices().rev().nth(39) {
        Some((at, _)) if at > 0 => format!("…{}", &text[at..]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_said_in_words() {
        let company: memhost_types::CompanyId = "acme".parse().unwrap();
        let mut comment = SourceRef::new(SourceKind::IssueComment, company.clone());
        assert_eq!(source_text(&comment), "Comment on issue");
        comment.issue_id = Some("PAP-7".to_owned());
        comment.comment_id = Some("c1".to_owned());
        assert_eq!(source_text(&comment), "Comment c1 on issue PAP-7");
        assert_eq!(source_text(&SourceRef::new(SourceKind::ManualNote, company)), "Manual note");
    }

    #[test]
    fn long_names_show_their_ends() {
        assert_eq!(ends("short"), "short");
        assert_eq!(ends(&"é".repeat(50)), format!("…{}", "é".repeat(40)));
    }
}
