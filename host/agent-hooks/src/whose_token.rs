//! Whose token the hooks of a tool will use. With a person's token every session of the tool can do
//! what the person can.

use std::time::Duration;

use super::HooksError;
use super::hook::NAME;
use super::http;
use super::output::line;
use super::settings::Settings;

/// How long the host may take to say what a token may do.
const PATIENCE: Duration = Duration::from_secs(2);

/// Warns where the hooks have no token of their own and would use one that is no agent's.
pub(super) fn warn(settings: &Settings, company: &str) -> Result<(), HooksError> {
    let Some(token) = settings.token.as_deref().filter(|_| !settings.has_own_token) else {
        return Ok(());
    };
    // No agent's token reads the list of bindings. A host that does not answer is asked at the next
    // installation.
    let path = format!("/control/v1/companies/{company}/bindings?limit=1");
    if http::status(settings.host(), token, &path, PATIENCE) != Ok(200) {
        return Ok(());
    }
    let (tool, agent) = (&settings.tool, settings.agent.as_ref().unwrap_or(&settings.tool));
    line(
        "warning: the hooks will use the token of your context or environment, which is no \
         agent's: a session of the tool can then do what you can. Give them a token of their own:",
    )?;
    line(&format!(
        "  memhost token create {agent} --role agent --agent {agent} --company {company}"
    ))?;
    line(&format!(
        "  MEMHOST_TOKEN=mh_… memhost {NAME} {tool} install --company {company} --save-token"
    ))
}
