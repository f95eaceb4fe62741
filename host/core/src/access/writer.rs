//! Who wrote a record, read from the name that the host gives whoever asks.

/// An agent, or a person for whom the system in front asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer<'a> {
    /// Its id.
    pub id: &'a str,
    /// Whether it is an agent.
    pub is_agent: bool,
    /// Whether it may do only what an agent may: a person without another role is a member.
    pub is_confined: bool,
}

impl<'a> Writer<'a> {
    /// None where a token asks in its own name.
    pub fn of(principal: &'a str) -> Option<Self> {
        let agent = |id| Self { id, is_agent: true, is_confined: true };
        if let Some(id) = principal.strip_prefix("agent:") {
            return Some(agent(id));
        }
        let acting = principal.strip_prefix("integration:")?;
        if let Some((_, id)) = acting.rsplit_once(" as agent:") {
            return Some(agent(id));
        }
        let (id, role) = acting.rsplit_once(" as person:")?.1.rsplit_once(", ")?;
        Some(Self { id, is_agent: false, is_confined: role == "agent" })
    }
}

/// Whether whoever asks may do only what an agent may. An integration that says only a role may be
/// an agent, too.
pub(crate) fn is_confined(principal: &str) -> bool {
    let is_some_agent =
        || principal.starts_with("integration:") && principal.ends_with(" as agent");
    Writer::of(principal).map_or_else(is_some_agent, |writer| writer.is_confined)
}

/// Whether a client is a program that speaks MCP: what it writes, a model wrote.
pub fn is_mcp(client: Option<&str>) -> bool {
    client.is_some_and(|client| client == "mcp" || client.starts_with("mcp:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_names_the_agent_or_the_person() {
        let of = |principal| {
            Writer::of(principal).map(|writer| (writer.id, writer.is_agent, writer.is_confined))
        };
        assert_eq!(of("agent:ada"), Some(("ada", true, true)));
        assert_eq!(of("integration:gw as agent:ada"), Some(("ada", true, true)));
        assert_eq!(of("integration:gw as person:u1, agent"), Some(("u1", false, true)));
        assert_eq!(
            of("integration:gw as person:u1, company_administrator"),
            Some(("u1", false, false))
        );
        for own in
            ["operator", "company_administrator:x", "integration:gw", "integration:gw as auditor"]
        {
            assert_eq!(of(own), None, "{own}");
        }
    }
}
