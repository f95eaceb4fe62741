//! Principals: the identities under which operations, changes and records are noted.
//!
//! A principal is compared and asked as a type. Its text is for people, in JSON and in the store
//! alike, and one text stands for one principal, whatever the names and ids hold: only the name of
//! an integration's token stands before another part, so it is quoted if it could be read as more
//! than a name.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::ids::check_outside_id;
use super::{AgentId, FieldError, IdError, Role, TextId, limits};

/// The identity of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The host, when it works on deliveries and jobs: `host`.
    Host,
    /// The host, when it exports, imports or erases a company: `host:system`.
    System,
    /// Whoever runs the host, without a token: `operator`.
    Operator,
    /// The bearer of a token that is no agent's, in its own name: `auditor:night-shift`.
    Token {
        /// The role of the token; an agent's token is [`Principal::Agent`].
        role: Role,
        /// What the token is called.
        name: String,
    },
    /// An agent with a token of its own: `agent:ada`.
    Agent(AgentId),
    /// An integration that acts for somebody: `integration:gw as agent:ada`.
    Integration {
        /// What its token is called.
        name: String,
        /// The agent, person or role that it acts for.
        acts_for: ActsFor,
    },
    /// The tokens whose refusals are counted together: `other tokens`.
    Others,
}

/// The agent, person or role that an integration acts for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ActsFor {
    /// An agent: `agent:ada`.
    Agent(AgentId),
    /// A person: `person:u1, agent`.
    Person {
        /// The id of the person in the system behind the integration.
        id: String,
        /// What the person may do.
        role: Role,
    },
    /// Whoever has this role; the request names nobody.
    Role(Role),
}

impl ActsFor {
    /// What whoever it is may do at most.
    pub fn role(&self) -> Role {
        match self {
            Self::Agent(_) => Role::Agent,
            Self::Person { role, .. } | Self::Role(role) => *role,
        }
    }
}

/// The agent or the person that wrote something.
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
    /// `None`: a token asked in its own name, or the host did it.
    pub fn of(principal: &'a Principal) -> Option<Self> {
        match principal {
            Principal::Agent(id) | Principal::Integration { acts_for: ActsFor::Agent(id), .. } => {
                Some(Self { id: id.as_str(), is_agent: true, is_confined: true })
            }
            Principal::Integration { acts_for: ActsFor::Person { id, role }, .. } => {
                Some(Self { id, is_agent: false, is_confined: *role == Role::Agent })
            }
            _ => None,
        }
    }
}

impl Principal {
    /// The agent that asked, by itself or through an integration.
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Agent(id) | Self::Integration { acts_for: ActsFor::Agent(id), .. } => Some(id),
            _ => None,
        }
    }

    /// The same without the name of this agent or person, with the same rights. `None`: it does not
    /// name them.
    pub fn without(&self, id: &str) -> Option<Self> {
        Writer::of(self).filter(|writer| writer.id == id)?;
        let (name, role) = match self {
            Self::Integration { name, acts_for } => (name.as_str(), acts_for.role()),
            // An agent's token has no other name.
            _ => ("forgotten", Role::Agent),
        };
        Some(Self::Integration { name: name.to_owned(), acts_for: ActsFor::Role(role) })
    }

    /// Whether it is an operator or a company's administrator, by itself or through an integration.
    pub fn is_administrator(&self) -> bool {
        let is_such = |role| matches!(role, Role::Operator | Role::CompanyAdministrator);
        match self {
            Self::Operator => true,
            Self::Token { role, .. } => is_such(*role),
            Self::Integration { acts_for, .. } => is_such(acts_for.role()),
            Self::Host | Self::System | Self::Agent(_) | Self::Others => false,
        }
    }

    /// Whether it may do only what an agent may. An integration that names only the role `agent`
    /// may act for an agent, too.
    pub fn is_confined(&self) -> bool {
        let names_role =
            matches!(self, Self::Integration { acts_for: ActsFor::Role(Role::Agent), .. });
        names_role || Writer::of(self).is_some_and(|writer| writer.is_confined)
    }
}

/// Checks what a token is called.
///
/// # Errors
/// If it is not 1 to 64 printable characters.
pub fn check_token_name(name: &str) -> Result<(), FieldError> {
    let is_fine =
        !name.is_empty() && name.chars().count() <= 64 && !name.chars().any(char::is_control);
    match is_fine {
        true => Ok(()),
        false => Err(FieldError::new("name", "is not 1 to 64 printable characters")),
    }
}

/// What stands between the name of an integration's token and for whom it acts.
const AS: &str = " as ";
const INTEGRATION: &str = "integration:";

/// The name of an integration's token, as a JSON string if the first `AS` behind it would not be
/// found behind it.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match is_plain(self.0) {
            true => f.write_str(self.0),
            false => serde_json::Value::from(self.0).fmt(f),
        }
    }
}

fn is_plain(name: &str) -> bool {
    !name.starts_with('"') && !name.contains(AS) && !name.ends_with(" as")
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::System => f.write_str("host:system"),
            Self::Operator => f.write_str("operator"),
            Self::Others => f.write_str("other tokens"),
            Self::Agent(id) => write!(f, "agent:{id}"),
            Self::Token { role: Role::Integration, name } => {
                write!(f, "{INTEGRATION}{}", Name(name))
            }
            Self::Token { role, name } => write!(f, "{role}:{name}"),
            Self::Integration { name, acts_for } => {
                write!(f, "{INTEGRATION}{}{AS}{acts_for}", Name(name))
            }
        }
    }
}

impl fmt::Display for ActsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(id) => write!(f, "agent:{id}"),
            Self::Person { id, role } => write!(f, "person:{id}, {role}"),
            Self::Role(role) => role.fmt(f),
        }
    }
}

impl FromStr for Principal {
    type Err = IdError;

    /// Reads the text that a principal is written as. Whoever makes one has the type already.
    fn from_str(text: &str) -> Result<Self, IdError> {
        match text {
            "host" => return Ok(Self::Host),
            "host:system" => return Ok(Self::System),
            "operator" => return Ok(Self::Operator),
            "other tokens" => return Ok(Self::Others),
            _ => {}
        }
        if let Some(integration) = text.strip_prefix(INTEGRATION) {
            let (name, acts_for) = integration_of(integration).ok_or_else(unreadable)?;
            return Ok(match acts_for {
                Some(acts_for) => Self::Integration { name, acts_for },
                None => Self::Token { role: Role::Integration, name },
            });
        }
        let (role, name) = text.split_once(':').ok_or_else(unreadable)?;
        match role.parse() {
            Ok(Role::Agent) => Ok(Self::Agent(AgentId::parse(name)?)),
            Ok(role) => Ok(Self::Token { role, name: name_of(name).ok_or_else(unreadable)? }),
            Err(_) => Err(unreadable()),
        }
    }
}

fn unreadable() -> IdError {
    let problem = "is not a principal; one is written as `operator`, `agent:ada` or \
                   `integration:gw as agent:ada`";
    IdError { what: "principal", problem: problem.to_owned() }
}

fn name_of(text: &str) -> Option<String> {
    check_token_name(text).ok().map(|()| text.to_owned())
}

/// The name of an integration's token, and for whom it acts.
fn integration_of(text: &str) -> Option<(String, Option<ActsFor>)> {
    if !text.starts_with('"') {
        let (name, acts_for) = match text.split_once(AS) {
            Some((name, acts_for)) => (name, Some(acts_for.parse().ok()?)),
            None => (text, None),
        };
        return is_plain(name).then(|| name_of(name)).flatten().map(|name| (name, acts_for));
    }
    let mut quoted = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let name = name_of(&quoted.next()?.ok()?)?;
    match &text[quoted.byte_offset()..] {
        "" => Some((name, None)),
        rest => Some((name, Some(rest.strip_prefix(AS)?.parse().ok()?))),
    }
}

impl FromStr for ActsFor {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if let Some(id) = text.strip_prefix("agent:") {
            return AgentId::parse(id).map(Self::Agent);
        }
        let Some(person) = text.strip_prefix("person:") else {
            return text.parse().map(Self::Role);
        };
        // No role holds a comma.
        let (id, role) = person.rsplit_once(", ").ok_or_else(unreadable)?;
        check_outside_id("personId", id, limits::MAX_OUTSIDE_ID_BYTES)?;
        Ok(Self::Person { id: id.to_owned(), role: role.parse()? })
    }
}

impl Serialize for Principal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Principal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Principal {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Principal".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn token(name: &str) -> Principal {
        Principal::Token { role: Role::Integration, name: name.to_owned() }
    }

    fn acting(name: &str, acts_for: ActsFor) -> Principal {
        Principal::Integration { name: name.to_owned(), acts_for }
    }

    fn person(id: &str, role: Role) -> ActsFor {
        ActsFor::Person { id: id.to_owned(), role }
    }

    fn agent(id: &str) -> AgentId {
        id.parse().unwrap()
    }

    /// Names of tokens and ids that could be read as more than that.
    const AWKWARD: [&str; 16] = [
        "eve as person:bob",
        "eve as person:bob, agent",
        "eve as agent:bob",
        "x as agent",
        "x as",
        "as",
        "as agent:bob",
        "a:b:c",
        "a, agent",
        ", agent",
        "operator",
        "host:system",
        "\"",
        "\"x\" as agent:bob",
        "ünïcödé 名前 \u{202e}",
        "agent:ada",
    ];

    /// Every kind of principal, with awkward names and ids in every place.
    fn awkward() -> Vec<Principal> {
        let mut all = vec![Principal::Host, Principal::System, Principal::Operator];
        all.push(Principal::Others);
        for one in AWKWARD {
            all.push(Principal::Agent(agent(one)));
            for role in Role::ALL.iter().filter(|role| **role != Role::Agent) {
                all.push(Principal::Token { role: *role, name: one.to_owned() });
            }
            for role in Role::ALL {
                all.push(acting(one, ActsFor::Role(*role)));
            }
            for other in AWKWARD {
                all.push(acting(one, ActsFor::Agent(agent(other))));
                for role in [Role::Agent, Role::Auditor, Role::CompanyAdministrator] {
                    all.push(acting(one, person(other, role)));
                }
            }
        }
        all
    }

    #[test]
    fn one_text_stands_for_one_principal() {
        let mut seen = std::collections::HashMap::new();
        for principal in awkward() {
            let text = principal.to_string();
            assert_eq!(text.parse::<Principal>().as_ref(), Ok(&principal), "{text}");
            let json = serde_json::to_string(&principal).unwrap();
            assert_eq!(json, serde_json::Value::from(text.as_str()).to_string());
            assert_eq!(serde_json::from_str::<Principal>(&json).unwrap(), principal);
            assert_eq!(seen.insert(text.clone(), principal), None, "{text}");
        }
    }

    fn any_name() -> impl Strategy<Value = String> {
        let part = prop_oneof!["[^\u{0}-\u{1f}\u{7f}-\u{9f}]{0,4}", select_part()];
        let name = proptest::collection::vec(part, 1..6).prop_map(|parts| parts.concat());
        name.prop_filter("a name of a token", |name| check_token_name(name).is_ok())
    }

    const PARTS: &[&str] =
        &[" as ", " as", "as ", "agent:", "person:", ", agent", "\"", "\\", ":", ", "];

    fn select_part() -> impl Strategy<Value = String> {
        proptest::sample::select(PARTS).prop_map(str::to_owned)
    }

    fn any_id() -> impl Strategy<Value = String> {
        any_name().prop_filter("an id", |id| AgentId::parse(id).is_ok())
    }

    proptest! {
        #[test]
        fn every_text_is_read_as_who_it_was_written_for(name in any_name(), id in any_id()) {
            for principal in [
                token(&name),
                Principal::Token { role: Role::Auditor, name: name.clone() },
                Principal::Agent(agent(&id)),
                acting(&name, ActsFor::Agent(agent(&id))),
                acting(&name, person(&id, Role::Agent)),
                acting(&name, person(&id, Role::CompanyAdministrator)),
                acting(&name, ActsFor::Role(Role::Agent)),
            ] {
                let text = principal.to_string();
                prop_assert_eq!(text.parse::<Principal>().ok(), Some(principal), "{}", text);
            }
        }
    }

    #[test]
    fn a_principal_is_shown_as_one_expects() {
        let night_shift =
            Principal::Token { role: Role::Auditor, name: "night-shift, x: as y".to_owned() };
        for (principal, text) in [
            (Principal::Host, "host"),
            (Principal::System, "host:system"),
            (Principal::Operator, "operator"),
            (Principal::Others, "other tokens"),
            (Principal::Agent(agent("ada")), "agent:ada"),
            (night_shift, "auditor:night-shift, x: as y"),
            (token("gw"), "integration:gw"),
            (acting("gw", ActsFor::Agent(agent("ada"))), "integration:gw as agent:ada"),
            (acting("gw", person("u1", Role::Agent)), "integration:gw as person:u1, agent"),
            (
                acting("gw", person("eve as person:bob", Role::Agent)),
                "integration:gw as person:eve as person:bob, agent",
            ),
            (acting("gw", ActsFor::Role(Role::Auditor)), "integration:gw as auditor"),
            // Only the name of an integration's token can need quotes.
            (
                acting("gw as person:eve", person("bob", Role::Agent)),
                "integration:\"gw as person:eve\" as person:bob, agent",
            ),
        ] {
            assert_eq!(principal.to_string(), text);
        }
    }

    #[test]
    fn a_text_that_the_host_does_not_write_is_no_principal() {
        let long_name = format!("auditor:{}", "x".repeat(65));
        for text in [
            "",
            "ada",
            "agent:",
            "agent: ada",
            "agent:a/b",
            "auditor:",
            "person:u1",
            "Agent:ada",
            "integration:",
            "integration:gw as",
            "integration:gw as nobody",
            "integration:gw as person:u1",
            "integration:gw as person:, agent",
            "integration:\"gw",
            "integration:\"gw\"x",
            "integration:\"gw\" as ",
            &long_name,
        ] {
            assert!(text.parse::<Principal>().is_err(), "{text}");
            assert!(serde_json::from_value::<Principal>(text.into()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_principal_names_the_agent_or_the_person() {
        let of = |principal: &Principal| {
            Writer::of(principal)
                .map(|writer| (writer.id.to_owned(), writer.is_agent, writer.is_confined))
        };
        let wrote = |id: &str, is_agent, is_confined| Some((id.to_owned(), is_agent, is_confined));
        for id in AWKWARD {
            let by_itself = Principal::Agent(agent(id));
            let through = acting("gw", ActsFor::Agent(agent(id)));
            for principal in [by_itself, through] {
                assert_eq!(of(&principal), wrote(id, true, true), "{principal}");
                assert!(principal.is_confined() && principal.agent() == Some(&agent(id)));
            }
            let member = acting("gw", person(id, Role::Agent));
            assert_eq!(of(&member), wrote(id, false, true), "{member}");
            assert!(member.is_confined() && member.agent().is_none());
            let administrator = acting("gw", person(id, Role::CompanyAdministrator));
            assert_eq!(of(&administrator), wrote(id, false, false), "{administrator}");
            assert!(!administrator.is_confined());
            // A token's name is nobody's id.
            let own = token(id);
            assert!(of(&own).is_none() && !own.is_confined() && own.agent().is_none(), "{own}");
        }
        let auditor = acting("gw", ActsFor::Role(Role::Auditor));
        assert!(of(&auditor).is_none() && !auditor.is_confined());
        let some_agent = acting("gw", ActsFor::Role(Role::Agent));
        assert!(of(&some_agent).is_none() && some_agent.is_confined());
        let administrators = Role::ALL.iter().filter(|role| {
            acting("gw", ActsFor::Role(**role)).is_administrator()
                && acting("gw", person("u1", **role)).is_administrator()
                && Principal::Token { role: **role, name: "t".to_owned() }.is_administrator()
        });
        let both = [&Role::Operator, &Role::CompanyAdministrator];
        assert_eq!(administrators.collect::<Vec<_>>(), both);
        assert!(Principal::Operator.is_administrator());
        for other in [Principal::Host, Principal::System, Principal::Agent(agent("operator"))] {
            assert!(!other.is_administrator(), "{other}");
        }
        for own in [Principal::Host, Principal::System, Principal::Operator, Principal::Others] {
            assert!(of(&own).is_none() && !own.is_confined(), "{own}");
        }
    }
}
