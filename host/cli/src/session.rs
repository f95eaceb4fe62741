//! The host of a command, as the command line, the environment and the context name it.

use std::io::{IsTerminal, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answer::{Answer, List};
use super::args::{CompanyArgs, HostArgs, ScopeArgs};
use super::argument::{confirm, without_nulls};
use super::connection::Connection;
use super::output::{Format, line};
use super::texts::escape;
use super::{Backend, CliError, Result};
use memhost_http::api::CompaniesView;
use memhost_types::CompanyId;

/// A host, a company and an output format.
pub(super) struct Session {
    pub(super) host: Backend,
    pub(super) format: Format,
    /// The company; empty for commands for the whole host.
    pub(super) company: String,
    /// The agent that acts, if one is named.
    pub(super) agent: Option<String>,
    /// What the command line, the environment and the context say.
    pub(super) connection: Connection,
}

impl HostArgs {
    /// The host that is named, and how it is reached.
    pub(super) async fn connect(&self) -> Result<(Connection, Backend)> {
        let connection = Connection::of(self)?;
        let host = Backend::open(self, &connection).await?;
        if connection.token.is_some() || self.data_dir.is_some() {
            return Ok((connection, host));
        }
        // A first start saves the token. What is wrong with the host is said when it is asked for
        // something.
        drop(host.get::<Value>("/info").await);
        let connection = Connection::of(self)?;
        let host = Backend::open(self, &connection).await?;
        Ok((connection, host))
    }

    /// The host that is named.
    pub(super) async fn open(&self) -> Result<Session> {
        let (connection, host) = self.connect().await?;
        Ok(Session {
            host,
            format: self.output.format(),
            company: String::new(),
            agent: None,
            connection,
        })
    }
}

impl CompanyArgs {
    /// The host that is named, for the company that is named.
    pub(super) async fn open(&self) -> Result<Session> {
        let session = self.host.open().await?;
        match self.named(&session.connection) {
            Some(company) => Ok(Session { company, ..session }),
            None => Err(no_company(&session).await),
        }
    }

    /// The same for a command that makes the company where the host does not have it.
    pub(super) async fn open_or_make(&self) -> Result<(Session, Made)> {
        let session = self.open().await?;
        let made = session.may_make(&session.company).await?;
        Ok((session, made))
    }

    /// The company that the arguments name, or the context.
    pub(super) fn named(&self, connection: &Connection) -> Option<String> {
        self.company
            .clone()
            .filter(|company| !company.is_empty())
            .or_else(|| connection.company.clone())
    }
}

/// The company that a command makes, if the host did not have it.
#[must_use]
pub(super) struct Made(Option<String>);

impl Made {
    /// Says so, after the command did it: the name may be a typing error.
    pub(super) fn say(&self) -> Result<()> {
        match &self.0 {
            Some(company) => Ok(writeln!(std::io::stderr(), "created company {company}")?),
            None => Ok(()),
        }
    }
}

impl ScopeArgs {
    /// The host that is named, for the company and the agent that are named.
    pub(super) async fn open(&self) -> Result<Session> {
        Ok(self.of(self.company.open().await?))
    }

    /// The same for a command that makes the company where the host does not have it.
    pub(super) async fn open_or_make(&self) -> Result<(Session, Made)> {
        let (session, made) = self.company.open_or_make().await?;
        Ok((self.of(session), made))
    }

    fn of(&self, session: Session) -> Session {
        let agent = self.agent.clone().filter(|agent| !agent.is_empty());
        let agent = agent.or_else(|| session.connection.agent.clone());
        Session { agent, ..session }
    }
}

/// The names of the first companies.
fn few(companies: &[CompanyId]) -> String {
    companies.iter().map(CompanyId::as_str).take(8).collect::<Vec<_>>().join(", ")
}

/// The error that says how to choose a company, with the known companies where the caller may list
/// them.
async fn no_company(session: &Session) -> CliError {
    let companies = match session.host.get::<CompaniesView>("/control/v1/companies").await {
        Ok(answer) => answer.read().map(|all| all.items).unwrap_or_default(),
        // A connection or token problem is reported instead.
        Err(error @ (CliError::Unreachable { .. } | CliError::Problem { status: 401, .. })) => {
            return error;
        }
        Err(_) => Vec::new(),
    };
    let known = match companies.is_empty() {
        true => "`memhost company create --company ID` makes the first one".to_owned(),
        false => format!("this host has {}", few(&companies)),
    };
    let verb = if session.connection.context.is_some() { "update" } else { "create main" };
    let message = format!(
        "is missing; set it or MEMHOST_COMPANY, or save it with `memhost context {verb} --company \
         ID`; {known}"
    );
    CliError::input("--company", message)
}

impl Session {
    /// Asks before a command makes a company, on a terminal and where the host has others: the name
    /// may be a typing error.
    pub(super) async fn may_make(&self, company: &str) -> Result<Made> {
        let known = self.host.get::<CompaniesView>("/control/v1/companies").await;
        // Who may not list companies has a token of one.
        let Ok(known) = known.and_then(|answer| answer.read()) else { return Ok(Made(None)) };
        if known.items.iter().chain(&known.erasing).any(|one| one.as_str() == company) {
            return Ok(Made(None));
        }
        if !known.items.is_empty() && std::io::stdin().is_terminal() {
            let names = few(&known.items);
            confirm(
                false,
                &format!("This host has no company {company}; it has {names}. Create {company}?"),
            )?;
        }
        Ok(Made(Some(company.to_owned())))
    }

    /// A path of the company's control plane.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/control/v1/companies/{}/{rest}", escape(&self.company))
    }

    /// A path of the company's runtime plane.
    pub(super) fn runtime(&self, rest: &str) -> String {
        format!("/runtime/v1/companies/{}/{rest}", escape(&self.company))
    }

    /// Sends a GET request to the company's control plane.
    pub(super) async fn get<T>(&self, rest: &str) -> Result<Answer<T>> {
        self.host.get(&self.path(rest)).await
    }

    /// Sends a POST request to the company's control plane.
    pub(super) async fn post<T>(&self, rest: &str, body: &impl Serialize) -> Result<Answer<T>> {
        self.host.post(&self.path(rest), body).await
    }

    /// Sends a PUT request to the company's control plane.
    pub(super) async fn put<T>(&self, rest: &str, body: &impl Serialize) -> Result<Answer<T>> {
        self.host.put(&self.path(rest), body).await
    }

    /// Sends a DELETE request to the company's control plane.
    pub(super) async fn delete<T>(&self, rest: &str) -> Result<Answer<T>> {
        self.host.delete(&self.path(rest), None).await
    }

    /// Sends a memory operation with the scope that the arguments name.
    pub(super) async fn send<T>(
        &self,
        scope: &ScopeArgs,
        operation: &str,
        mut body: Value,
    ) -> Result<Answer<T>> {
        body["bindingKey"] = json!(scope.binding);
        body["scope"] = without_nulls(json!({
            "companyId": self.company,
            "agentId": self.agent,
            "projectId": scope.project,
            "issueId": scope.issue,
            "runId": scope.run,
            "subjectId": scope.subject,
            "sessionKey": scope.session,
            "namespace": scope.namespace,
        }));
        self.host.post(&self.runtime(operation), &without_nulls(body)).await
    }

    /// Shows an answer.
    pub(super) fn show<T: DeserializeOwned>(
        &self,
        answer: &Answer<T>,
        human: impl FnOnce(&T) -> String,
    ) -> Result<()> {
        let human = || answer.read().map(|read| human(&read));
        line(&self.format.render(answer.json(), "", human)?)
    }

    /// Shows an answer with a list.
    pub(super) fn show_list<T: List>(
        &self,
        answer: &Answer<T>,
        human: impl FnOnce(&T) -> String,
    ) -> Result<()> {
        let human = || answer.read().map(|read| human(&read));
        line(&self.format.render(answer.json(), T::ITEMS, human)?)
    }

    /// Shows what a command made itself.
    pub(super) fn tell(
        &self,
        report: &impl Serialize,
        human: impl FnOnce() -> String,
    ) -> Result<()> {
        line(&self.format.tell(report, "", human)?)
    }

    /// Prints a remark in table format only.
    pub(super) fn say(&self, text: &str) -> Result<()> {
        if self.format == Format::Table { line(text) } else { Ok(()) }
    }

    /// Shows the answer to a deletion; in table format prints `text` instead.
    pub(super) fn gone(&self, answer: &Answer<Value>, text: &str) -> Result<()> {
        match (self.format, answer.json()) {
            (Format::Table, _) => line(text),
            (_, Value::Null) => Ok(()),
            _ => self.show(answer, |_| String::new()),
        }
    }
}
