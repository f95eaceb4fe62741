//! The caller and the scope of a request: from the token, and from the headers of the client's configuration.

use axum::http::HeaderMap;
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use percent_encoding::percent_decode;
use rmcp::RoleServer;
use rmcp::service::RequestContext;

use super::error::McpError;
use memhost_core::Caller;
use memhost_types::{BindingKey, Scope, SourceKind, SourceRef};

/// One request's caller and scope.
#[derive(Debug, Clone)]
pub(super) struct RequestScope {
    pub(super) caller: Caller,
    pub(super) scope: Scope,
    /// A binding other than the one that would answer.
    pub(super) binding: Option<BindingKey>,
    /// How tools are named towards this client.
    pub(super) names: ToolNames,
}

/// How tools are called: as the contract names them, or without the dots that some clients hand on to models which do
/// not take them. Both are understood in a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ToolNames {
    /// `memory.search`.
    #[default]
    Dotted,
    /// `memory_search`.
    Plain,
}

/// The longest name of a client that is kept, in characters.
const MAX_CLIENT: usize = 120;

impl RequestScope {
    /// The caller of the token, and the scope of the headers. The service fills in what the token fixes, or compares it
    /// with the headers.
    ///
    /// # Errors
    /// If no company is named, or a header is not valid.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Result<Self, McpError> {
        let parts = context.extensions.get::<Parts>().ok_or(McpError::NoCaller)?;
        let caller = parts.extensions.get::<Caller>().cloned().ok_or(McpError::NoCaller)?;
        // Not the peer's: without a session the library makes one up.
        let client = context.meta.client_info().map(|client| format!("{}/{}", client.name, client.version));
        Self::from_headers(caller, &parts.headers, client)
    }

    fn from_headers(caller: Caller, headers: &HeaderMap, client: Option<String>) -> Result<Self, McpError> {
        let text = |name| header(headers, name);
        let company = match text("memhost-company-id")? {
            Some(company) => parse("memhost-company-id", &company)?,
            None => caller.company().cloned().ok_or(McpError::NoCompany)?,
        };
        let agent = text("memhost-agent-id")?;
        let binding = text("memhost-binding-key")?;
        let scope = Scope {
            agent_id: agent.map(|agent| parse("memhost-agent-id", &agent)).transpose()?,
            project_id: text("memhost-project-id")?,
            issue_id: text("memhost-issue-id")?,
            run_id: text("memhost-run-id")?,
            subject_id: text("memhost-subject-id")?,
            session_key: text("memhost-session-key")?,
            namespace: text("memhost-namespace")?,
            ..Scope::company(company)
        };
        let named = client.or_else(|| Some(headers.get(USER_AGENT)?.to_str().ok()?.to_owned()));
        let via = via(named.as_deref().unwrap_or_default());
        let binding = binding.map(|key| parse("memhost-binding-key", &key)).transpose()?;
        let names = match text("memhost-tool-names")?.as_deref() {
            None | Some("dotted") => ToolNames::Dotted,
            Some("plain") => ToolNames::Plain,
            Some(other) => {
                let message = format!("is `{other}`; use `dotted` or `plain`");
                return Err(McpError::Header { name: "memhost-tool-names", message });
            }
        };
        Ok(Self { caller: caller.through(via), scope, binding, names })
    }

    /// The source of a record that this request writes.
    pub(super) fn source(&self) -> SourceRef {
        SourceRef {
            issue_id: self.scope.issue_id.clone(),
            run_id: self.scope.run_id.clone(),
            external_ref: self.caller.via().map(str::to_owned),
            ..SourceRef::new(SourceKind::ManualNote, self.scope.company_id.clone())
        }
    }
}

/// The surface as operations show it: `mcp:` and the client's name.
fn via(client: &str) -> String {
    let client: String = client.chars().filter(|c| !c.is_control()).take(MAX_CLIENT).collect();
    if client.is_empty() { "mcp".to_owned() } else { format!("mcp:{client}") }
}

/// A header's text. Percent signs are decoded: a header carries ASCII only, an id any characters.
fn header(headers: &HeaderMap, name: &'static str) -> Result<Option<String>, McpError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let wrong = |message: &str| McpError::Header { name, message: message.to_owned() };
    if headers.get_all(name).iter().count() > 1 {
        return Err(wrong("is sent twice; send it once"));
    }
    let decoded = percent_decode(value.as_bytes()).decode_utf8();
    let text = decoded.map_err(|_| wrong("is not UTF-8; percent-encode characters that are not ASCII"))?;
    // Clients fill in their configuration from variables. A variable that is not set leaves an empty text.
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(name: &'static str, text: &str) -> Result<T, McpError> {
    text.parse().map_err(|error: T::Err| McpError::Header { name, message: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn read(headers: &[(&'static str, &str)]) -> Result<RequestScope, McpError> {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap()));
        RequestScope::from_headers(Caller::operator(), &headers.collect(), None)
    }

    #[test]
    fn the_scope_is_read_from_headers() {
        let request = read(&[
            ("memhost-company-id", "acme"),
            ("memhost-agent-id", "ada"),
            ("memhost-run-id", "r%C3%BCn"),
            ("memhost-issue-id", "  "),
            ("memhost-namespace", "drive%2D1"),
            ("memhost-binding-key", "research"),
            ("user-agent", "claude-code/2.1"),
        ])
        .unwrap();
        assert_eq!(request.scope.company_id.as_str(), "acme");
        assert_eq!(request.scope.run_id.as_deref(), Some("rün"));
        assert_eq!((request.scope.issue_id.as_deref(), request.scope.namespace.as_deref()), (None, Some("drive-1")));
        assert_eq!(request.binding.as_ref().map(AsRef::as_ref), Some("research"));
        let source = request.source();
        assert_eq!(
            (source.external_ref.as_deref(), source.run_id.as_deref()),
            (Some("mcp:claude-code/2.1"), Some("rün"))
        );
    }

    #[test]
    fn what_is_missing_or_wrong_is_said() {
        assert!(matches!(read(&[]), Err(McpError::NoCompany)));
        for headers in [
            [("memhost-company-id", "a/b"), ("memhost-agent-id", "ada")],
            [("memhost-company-id", "acme"), ("memhost-agent-id", "%FF")],
            [("memhost-company-id", "acme"), ("memhost-company-id", "other")],
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            let error = RequestScope::from_headers(Caller::operator(), &map, None).unwrap_err();
            assert!(matches!(error, McpError::Header { .. }), "{headers:?}: {error}");
        }
    }

    #[test]
    fn a_clients_name_is_cut_and_cleaned() {
        assert_eq!(via(""), "mcp");
        assert_eq!(via("a\nb"), "mcp:ab");
        assert_eq!(via(&"x".repeat(400)).len(), 4 + MAX_CLIENT);
    }
}
