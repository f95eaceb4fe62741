//! The caller and the scope of a request: from the token, and from the headers of the client's
//! configuration.

use axum::http::HeaderMap;
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::Implementation;
use rmcp::service::RequestContext;

use super::error::McpError;
use crate::auth::header_text;
use memhost_core::{ActAs, Caller};
use memhost_types::{BindingKey, Principal, Role, Scope, SourceKind, SourceRef};

/// One request's caller and scope.
#[derive(Debug, Clone)]
pub struct RequestScope {
    /// Who calls.
    pub caller: Caller,
    /// The scope that the client's configuration names.
    pub scope: Scope,
    /// A binding other than the one that would answer.
    pub(super) binding: Option<BindingKey>,
    /// How tools are named towards this client.
    pub(super) names: ToolNames,
}

/// How tools are called: without dots, because many clients hand the names on to models and SDKs
/// that take none, or as the plan names them. Both are understood in a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ToolNames {
    /// `memory_search`.
    #[default]
    Plain,
    /// `memory.search`.
    Dotted,
}

/// The longest name of a client that is kept, in characters.
const MAX_CLIENT: usize = 120;

impl RequestScope {
    /// The caller of the token, and the scope of the headers. The service fills in what the token
    /// fixes, or compares it with the headers.
    ///
    /// # Errors
    /// If no company is named, or a header is not valid.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Result<Self, McpError> {
        let parts = context.extensions.get::<Parts>().ok_or(McpError::NoCaller)?;
        let caller = parts.extensions.get::<Caller>().cloned().ok_or(McpError::NoCaller)?;
        // Not the peer's: without a session the library makes one up.
        let client = context.meta.client_info();
        Self::from_headers(caller, &parts.headers, client.as_ref())
    }

    fn from_headers(
        caller: Caller,
        headers: &HeaderMap,
        client: Option<&Implementation>,
    ) -> Result<Self, McpError> {
        let text = |name| header(headers, name);
        let company = match text("memhost-company-id")? {
            Some(company) => parse("memhost-company-id", &company)?,
            None => caller.company().cloned().ok_or(McpError::NoCompany)?,
        };
        let agent = text("memhost-agent-id")?;
        let binding = text("memhost-binding-key")?;
        let scope = Scope {
            agent_id: agent.map(|agent| parse("memhost-agent-id", &agent)).transpose()?,
            actor_agent_id: None,
            project_id: text("memhost-project-id")?,
            issue_id: text("memhost-issue-id")?,
            run_id: text("memhost-run-id")?,
            subject_id: text("memhost-subject-id")?,
            session_key: text("memhost-session-key")?,
            namespace: text("memhost-namespace")?,
            ..Scope::company(company)
        };
        let (caller, scope) = through_paperclip(caller, scope, headers)?;
        let via = via(&client_name(client, headers, &caller));
        let binding = binding.map(|key| parse("memhost-binding-key", &key)).transpose()?;
        let names = match text("memhost-tool-names")?.as_deref() {
            None | Some("plain") => ToolNames::Plain,
            Some("dotted") => ToolNames::Dotted,
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

/// Names that a library gives every program, in small letters and without a version.
const NAMES_OF_LIBRARIES: [&str; 31] = [
    "aiohttp",
    "apache-httpclient",
    "axios",
    "bun",
    "client",
    "curl",
    "deno",
    "example-client",
    "go-http-client",
    "got",
    "guzzlehttp",
    "httpx",
    "java-http-client",
    "libcurl",
    "mcp",
    "mcp-client",
    "mozilla",
    "my-client",
    "node",
    "node-fetch",
    "node.js",
    "okhttp",
    "postmanruntime",
    "python",
    "python-httpx",
    "python-requests",
    "python-urllib",
    "reqwest",
    "ruby",
    "undici",
    "ureq",
];

fn is_of_a_library(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    name.is_empty() || NAMES_OF_LIBRARIES.contains(&name.as_str())
}

/// What a client calls itself: the name of the program, else the title that it shows. `None`: these
/// are names that a library gives every program.
pub fn client_label(name: &str, title: Option<&str>, version: &str) -> Option<String> {
    let name = [Some(name), title].into_iter().flatten().find(|name| !is_of_a_library(name))?;
    Some(format!("{name}/{version}"))
}

/// The name of the client: what it calls itself, else what its HTTP library says. Where these name
/// a library only, the token says more. For whom an integration acts is no part of it: providers
/// keep the name with their records, also when that person is deleted.
fn client_name(client: Option<&Implementation>, headers: &HeaderMap, caller: &Caller) -> String {
    let told =
        client.map(|client| client_label(&client.name, client.title.as_deref(), &client.version));
    // A header begins with a product, such as `Python/3.12 aiohttp/3.9`.
    let is_program =
        |agent: &String| !is_of_a_library(agent.split(['/', ' ']).next().unwrap_or_default());
    let agent = || headers.get(USER_AGENT)?.to_str().ok().map(str::to_owned).filter(is_program);
    let named = told.flatten().or_else(agent);
    named.unwrap_or_else(|| match caller.principal() {
        Principal::Integration { name, .. } => {
            Principal::Token { role: Role::Integration, name: name.clone() }.to_string()
        }
        by => by.to_string(),
    })
}

/// The surface as operations show it: `mcp:` and the client's name.
fn via(client: &str) -> String {
    let client: String = client.chars().filter(|c| !c.is_control()).take(MAX_CLIENT).collect();
    if client.is_empty() { "mcp".to_owned() } else { format!("mcp:{client}") }
}

fn header(headers: &HeaderMap, name: &'static str) -> Result<Option<String>, McpError> {
    header_text(headers, name)
        .map_err(|message| McpError::Header { name, message: message.to_owned() })
}

/// The caller and the scope with what Paperclip's gateway says of a call. Its headers count with an
/// integration's token only: from anybody else they would be claims.
fn through_paperclip(
    caller: Caller,
    mut scope: Scope,
    headers: &HeaderMap,
) -> Result<(Caller, Scope), McpError> {
    const COMPANY: &str = "x-paperclip-company-id";
    const AGENT: &str = "x-paperclip-agent-id";
    if !caller.is_integration() {
        return Ok((caller, scope));
    }
    let text = |name| header(headers, name);
    if text(COMPANY)?.is_some_and(|company| company != scope.company_id.as_str()) {
        let message = format!("is not the company of the token, `{}`", scope.company_id);
        return Err(McpError::Header { name: COMPANY, message });
    }
    scope.project_id = scope.project_id.or(text("x-paperclip-project-id")?);
    scope.issue_id = scope.issue_id.or(text("x-paperclip-issue-id")?);
    let (agent, run_id) = (text(AGENT)?, text("x-paperclip-run-id")?);
    if agent.is_none() && headers.contains_key(AGENT) {
        // An agent that is nobody would be the gateway itself.
        let message = "is empty; name the agent, or leave the header out".to_owned();
        return Err(McpError::Header { name: AGENT, message });
    }
    // The host's own headers go first.
    if caller.is_acting() || agent.is_none() {
        return Ok((caller, scope));
    }
    let agent_id = agent.map(|agent| parse(AGENT, &agent)).transpose()?;
    let caller = caller.acting(ActAs { agent_id, run_id, ..ActAs::default() });
    let caller =
        caller.map_err(|error| McpError::Header { name: AGENT, message: error.to_string() })?;
    Ok((caller, scope))
}

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &'static str,
    text: &str,
) -> Result<T, McpError> {
    text.parse().map_err(|error: T::Err| McpError::Header { name, message: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn read(headers: &[(&'static str, &str)]) -> Result<RequestScope, McpError> {
        let headers = headers.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        });
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
        assert_eq!(
            (request.scope.issue_id.as_deref(), request.scope.namespace.as_deref()),
            (None, Some("drive-1"))
        );
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
    fn a_name_that_every_program_has_is_no_name_of_a_client() {
        let name = |client: Option<(&str, Option<&str>)>, user_agent: &'static str| {
            let client = client.map(|(name, title)| {
                let client = Implementation::new(name, "2");
                match title {
                    Some(title) => client.with_title(title),
                    None => client,
                }
            });
            let mut headers = HeaderMap::new();
            headers.insert(USER_AGENT, HeaderValue::from_static(user_agent));
            client_name(client.as_ref(), &headers, &Caller::operator())
        };
        assert_eq!(name(Some(("cursor", None)), "node"), "cursor/2");
        assert_eq!(name(Some(("mcp-client", Some("Python IDE"))), "node"), "Python IDE/2");
        assert_eq!(name(Some(("mcp", None)), "codex/0.9"), "codex/0.9");
        for library in ["node", "python-httpx/0.27.0", "Go-http-client/2.0", "undici", ""] {
            assert_eq!(name(None, library), "operator", "{library}");
            assert_eq!(name(Some(("node", None)), library), "operator", "{library}");
        }
        assert_eq!(name(None, "claude-code/2.1 (cli)"), "claude-code/2.1 (cli)");
    }

    #[test]
    fn a_clients_name_is_cut_and_cleaned() {
        assert_eq!(via(""), "mcp");
        assert_eq!(via("a\nb"), "mcp:ab");
        assert_eq!(via(&"x".repeat(400)).len(), 4 + MAX_CLIENT);
    }
}
