//! Links to the pages of the issues and runs that memory came from: addresses with a place for an
//! id.

use crate::escape::escape;
use memhost_types::{CompanyId, Origin};

const COMPANY: &str = "{companyId}";
const AGENT: &str = "{agentId}";
const ISSUE: &str = "{issueId}";
const RUN: &str = "{runId}";

/// An address with a place for an id, such as `https://paperclip.example/issues/{issueId}`.
/// `{companyId}` may be there, too, and for a run `{agentId}`. Its scheme, host and port are fixed:
/// no id leads elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTemplate {
    text: String,
    place: &'static str,
}

impl LinkTemplate {
    /// A template for issues: has `{issueId}`.
    ///
    /// # Errors
    /// The error, and how to write a template.
    pub fn of_issue(text: &str) -> Result<Self, String> {
        Self::new(text, ISSUE)
    }

    /// A template for runs: has `{runId}`.
    ///
    /// # Errors
    /// The error, and how to write a template.
    pub fn of_run(text: &str) -> Result<Self, String> {
        Self::new(text, RUN)
    }

    fn new(text: &str, place: &'static str) -> Result<Self, String> {
        let scheme = text.find("://").map_or(0, |at| at + 3);
        let (origin, rest) = text
            .split_at(text[scheme..].find(['/', '?', '#']).map_or(text.len(), |at| scheme + at));
        origin.parse::<Origin>().map_err(|error| error.to_string())?;
        if origin.contains('*') {
            return Err(
                "has a wildcard for its host; name the one host that the pages are on".to_owned()
            );
        }
        if text
            .chars()
            .any(|c| c.is_control() || c.is_whitespace() || matches!(c, '"' | '<' | '>' | '\\'))
        {
            return Err("has a character that no address has; percent-encode it".to_owned());
        }
        if !rest.contains(place) {
            return Err(format!(
                "has no place for the id; write `{place}` where the id goes, behind the host"
            ));
        }
        let (others, agent) = (
            rest.replace(place, "").replace(COMPANY, ""),
            if place == RUN { AGENT } else { COMPANY },
        );
        if others.replace(agent, "").contains(['{', '}']) {
            return Err(format!(
                "has another place than `{place}`, `{COMPANY}` and, for a run, `{AGENT}`; remove it"
            ));
        }
        Ok(Self { text: text.to_owned(), place })
    }

    /// The address for an id, and for the agent whose run it is. None where the address needs an
    /// agent and there is none, and for `.` and `..`, which mean something in a path however they
    /// are written.
    pub fn address(&self, company: &CompanyId, id: &str, agent: Option<&str>) -> Option<String> {
        let mut address = self.text.clone();
        for (place, value) in
            [(COMPANY, Some(company.as_str())), (AGENT, agent), (self.place, Some(id))]
        {
            if self.text.contains(place) {
                let value = value.filter(|value| !matches!(*value, "." | ".."))?;
                // An escaped value has no place in it.
                address = address.replace(place, &escape(value));
            }
        }
        Some(address)
    }
}

/// The link templates that are configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceLinks {
    /// An issue's page.
    pub issue: Option<LinkTemplate>,
    /// A run's page.
    pub run: Option<LinkTemplate>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stays_an_id_wherever_it_stands() {
        let company: CompanyId = "acme".parse().unwrap();
        let path = LinkTemplate::of_issue(
            "https://paperclip.example/{companyId}/issues/{issueId}?tab=memory",
        )
        .unwrap();
        let at = |id: &str| path.address(&company, id, None).unwrap();
        assert_eq!(at("PAP-7"), "https://paperclip.example/acme/issues/PAP-7?tab=memory");
        assert_eq!(
            at("a/../b?c#d\"é"),
            "https://paperclip.example/acme/issues/a%2F..%2Fb%3Fc%23d%22%C3%A9?tab=memory"
        );
        assert_eq!(
            at("{companyId}"),
            "https://paperclip.example/acme/issues/%7BcompanyId%7D?tab=memory"
        );
        assert_eq!(
            (path.address(&company, "..", None), path.address(&company, ".", None)),
            (None, None)
        );
        let run = LinkTemplate::of_run("https://paperclip.example/agents/{agentId}/runs/{runId}")
            .unwrap();
        let of = |agent| run.address(&company, "{agentId}", agent);
        assert_eq!(
            of(Some("a/b")).unwrap(),
            "https://paperclip.example/agents/a%2Fb/runs/%7BagentId%7D"
        );
        assert_eq!((of(None), of(Some(".."))), (None, None));
    }

    #[test]
    fn only_pages_of_one_host_can_be_linked_to() {
        for wrong in [
            "javascript:alert({issueId})",
            "ftp://a.example/{issueId}",
            "/issues/{issueId}",
            "https://{issueId}.example/",
            "https://a.example{issueId}",
            "https://*.a.example.org/{issueId}",
            "https://user:pass@a.example/{issueId}",
            "https://a.example/issues",
            "https://a.example/{runId}",
            "https://a.example/{issueId}/{x}",
            "https://a.example/{agentId}/{issueId}",
            "https://a.example/ {issueId}",
            "https://a.example/\"{issueId}",
        ] {
            assert!(LinkTemplate::of_issue(wrong).is_err(), "{wrong}");
        }
        assert!(LinkTemplate::of_run("http://127.0.0.1:3100/runs/{runId}").is_ok());
    }
}
