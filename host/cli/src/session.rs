//! A host that a command talks to, with what the command line, the environment and the profile say of it.

use serde_json::Value;

use super::args::{CompanyArgs, HostArgs, ScopeArgs};
use super::output::{Format, escape, line};
use super::profile::Target;
use super::{Backend, CliError};

/// A host, whose memory, and how answers are shown.
pub(super) struct Session {
    pub(super) host: Backend,
    pub(super) format: Format,
    /// The company; empty for commands that are about the host.
    pub(super) company: String,
    /// The agent that acts, if one is named.
    pub(super) agent: Option<String>,
}

impl HostArgs {
    /// The host that is named.
    pub(super) async fn open(&self) -> Result<Session, CliError> {
        let host = Backend::open(self).await?;
        Ok(Session { host, format: self.output.format(), company: String::new(), agent: None })
    }
}

impl CompanyArgs {
    /// The host that is named, for the company that is named.
    pub(super) async fn open(&self) -> Result<Session, CliError> {
        let session = self.host.open().await?;
        let company = match self.company.as_deref().filter(|company| !company.is_empty()) {
            Some(company) => company.to_owned(),
            None => match Target::of(&self.host)? {
                Target { company: Some(company), .. } => company,
                target => return Err(no_company(&session.host, &target).await),
            },
        };
        Ok(Session { company, ..session })
    }
}

impl ScopeArgs {
    /// The host that is named, for the company and the agent that are named.
    pub(super) async fn open(&self) -> Result<Session, CliError> {
        let session = self.company.open().await?;
        let agent = match self.agent.as_deref().filter(|agent| !agent.is_empty()) {
            Some(agent) => Some(agent.to_owned()),
            None => Target::of(&self.company.host)?.agent,
        };
        Ok(Session { agent, ..session })
    }
}

/// Says how a company is chosen, and which there are, where the caller may know that.
async fn no_company(host: &Backend, target: &Target) -> CliError {
    let companies = match host.get("/control/v1/companies").await {
        Ok(answer) => answer["items"].as_array().cloned().unwrap_or_default(),
        // Nobody answers, or the token will not do: that comes first.
        Err(error @ (CliError::Unreachable { .. } | CliError::Problem { status: 401, .. })) => return error,
        Err(_) => Vec::new(),
    };
    let known: Vec<&str> = companies.iter().filter_map(Value::as_str).take(8).collect();
    let known = match known.is_empty() {
        true => "any name will do for the first one".to_owned(),
        false => format!("this host has {}", known.join(", ")),
    };
    let verb = if target.profile.is_some() { "update" } else { "create main" };
    let message = format!(
        "is missing; give it, or set MEMHOST_COMPANY, or keep it with `memhost profile {verb} --company ID`; {known}"
    );
    CliError::input("--company", message)
}

impl Session {
    /// Below the company's control plane.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/control/v1/companies/{}/{rest}", escape(&self.company))
    }

    /// Below the company's runtime plane.
    pub(super) fn runtime(&self, rest: &str) -> String {
        format!("/runtime/v1/companies/{}/{rest}", escape(&self.company))
    }

    /// Reads something of the company.
    pub(super) async fn get(&self, rest: &str) -> Result<Value, CliError> {
        self.host.get(&self.path(rest)).await
    }

    /// Does something of the company.
    pub(super) async fn post(&self, rest: &str, body: &Value) -> Result<Value, CliError> {
        self.host.post(&self.path(rest), body).await
    }

    /// Sets something of the company.
    pub(super) async fn put(&self, rest: &str, body: &Value) -> Result<Value, CliError> {
        self.host.put(&self.path(rest), body).await
    }

    /// Takes something of the company away.
    pub(super) async fn delete(&self, rest: &str) -> Result<Value, CliError> {
        self.host.delete(&self.path(rest)).await
    }

    /// Shows an answer; `items` names the member that has its items, if it is a list.
    pub(super) fn show(
        &self,
        answer: &Value,
        items: &str,
        human: impl FnOnce(&Value) -> String,
    ) -> Result<(), CliError> {
        line(&self.format.render(answer, items, human)?)
    }

    /// Says something that the host's answer does not: to people only.
    pub(super) fn say(&self, text: &str) -> Result<(), CliError> {
        if self.format == Format::Table { line(text) } else { Ok(()) }
    }

    /// Shows what the host answered to a deletion, and says it to people.
    pub(super) fn gone(&self, answer: &Value, text: &str) -> Result<(), CliError> {
        match (self.format, answer) {
            (Format::Table, _) => line(text),
            (_, Value::Null) => Ok(()),
            (_, answer) => self.show(answer, "", |_| String::new()),
        }
    }
}
