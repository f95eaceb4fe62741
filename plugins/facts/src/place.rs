//! The owner of a fact, and who sees it.

use memhost_sdk::types::{Error, Scope};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The prefix of the storage key of every list.
pub(crate) const LISTS: &[u8] = b"list\0";
/// How many bytes of a hash are in a key. With so many, collisions cannot be made on purpose.
const HASH: usize = 16;

/// The two kinds of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// About a user. It follows the user everywhere.
    User,
    /// About a workspace, whose members share it.
    Drive,
}

impl Kind {
    /// As `save_memory` calls it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "user" => Some(Self::User),
            "drive" => Some(Self::Drive),
            _ => None,
        }
    }

    /// As `save_memory` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Drive => "drive",
        }
    }
}

/// The owner of the facts of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Owner {
    /// A user: the scope's `subjectId`.
    Subject(String),
    /// The agent itself, if its scope names no user.
    Agent(String),
    /// A workspace: the scope's `projectId`.
    Project(String),
    /// A workspace: the scope's `namespace`, if it names no project.
    Namespace(String),
    /// The company itself, if the scope names neither a user nor a workspace.
    Company,
}

impl Owner {
    /// The prefix of the keys of all lists of an owner.
    pub(crate) fn prefix(&self) -> Vec<u8> {
        [LISTS, &hashed(self)].concat()
    }

    fn user(scope: &Scope) -> Option<Self> {
        let subject = scope.subject_id.clone().map(Self::Subject);
        subject.or_else(|| scope.agent_id.clone().map(Self::Agent))
    }

    fn drive(scope: &Scope) -> Option<Self> {
        let project = scope.project_id.clone().map(Self::Project);
        project.or_else(|| scope.namespace.clone().map(Self::Namespace))
    }

    /// All owners that a scope names.
    pub(crate) fn named(scope: &Scope) -> Vec<Self> {
        // An agent counts as a user, too, under whichever name.
        let subject =
            scope.agent_id.clone().filter(|_| scope.subject_id.is_none()).map(Self::Subject);
        let agent = scope
            .agent_id
            .clone()
            .filter(|agent| scope.subject_id.as_ref() == Some(agent))
            .map(Self::Agent);
        let namespace =
            scope.namespace.clone().filter(|_| scope.project_id.is_some()).map(Self::Namespace);
        [Self::user(scope), subject, agent, Self::drive(scope), namespace]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// A list: its owner, and the contract's partitions that a write has set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) owner: Owner,
    agent: Option<String>,
    namespace: Option<String>,
}

impl Place {
    /// The list that a write of this scope goes to. If the caller names a `kind`, as `save_memory`
    /// does, only that part of the scope counts. Otherwise the fact is the user's if the scope
    /// names a user, with all partitions of the scope, and the company's if it names nobody.
    ///
    /// # Errors
    /// If the scope names no owner of the kind.
    pub(crate) fn of_write(scope: &Scope, kind: Option<Kind>) -> Result<Self, Error> {
        let named = kind.or(match () {
            () if scope.subject_id.is_some() => Some(Kind::User),
            () if scope.project_id.is_some() || scope.namespace.is_some() => Some(Kind::Drive),
            () => scope.agent_id.as_ref().map(|_| Kind::User),
        });
        let owner = match named {
            None => Ok(Owner::Company),
            Some(Kind::User) => Owner::user(scope).ok_or_else(|| {
                Error::invalid(
                    "scope.subjectId",
                    "is missing: a fact is about a user or of a workspace; name the one in \
                     `scope.subjectId` or the other \
                     in `scope.projectId`",
                )
            }),
            Some(Kind::Drive) => Owner::drive(scope).ok_or_else(|| {
                Error::invalid(
                    "scope.projectId",
                    "is missing: it names the workspace of a fact with the scope `drive`",
                )
            }),
        }?;
        let namespace = scope.namespace.clone().filter(|_| kind != Some(Kind::User));
        Ok(Self { owner, agent: scope.agent_id.clone(), namespace })
    }

    /// The scope of its facts: their owner, and the partitions.
    pub(crate) fn into_scope(self, company: &str) -> Scope {
        let mut scope =
            Scope { agent_id: self.agent, namespace: self.namespace, ..Scope::company(company) };
        match self.owner {
            Owner::Subject(id) => scope.subject_id = Some(id),
            Owner::Agent(id) => scope.agent_id = Some(id),
            Owner::Project(id) => scope.project_id = Some(id),
            Owner::Namespace(id) => scope.namespace = Some(id),
            Owner::Company => {}
        }
        scope
    }

    /// The storage key of the list.
    pub(crate) fn key(&self) -> Vec<u8> {
        [self.owner.prefix(), hashed(&(&self.agent, &self.namespace))].concat()
    }

    /// Which of the two kinds it is.
    pub(crate) fn kind(&self) -> Kind {
        match self.owner {
            Owner::Subject(_) | Owner::Agent(_) => Kind::User,
            Owner::Project(_) | Owner::Namespace(_) | Owner::Company => Kind::Drive,
        }
    }

    /// Whether a scope that names no project reaches a fact by its id: whoever has the id need not
    /// know in which project it was written.
    pub(crate) fn is_reached_by(&self, scope: &Scope) -> bool {
        match &self.owner {
            Owner::Project(project) if scope.project_id.is_none() => {
                self.is_seen_by(&Scope { project_id: Some(project.clone()), ..scope.clone() })
            }
            _ => self.is_seen_by(scope),
        }
    }

    /// Whether a scope sees the facts: it names their owner, or no owner at all, and has no other
    /// value in a partition.
    pub(crate) fn is_seen_by(&self, scope: &Scope) -> bool {
        let named = Owner::named(scope);
        let fits = |own: &Option<String>, asked: &Option<String>| {
            own.is_none() || asked.is_none() || own == asked
        };
        (named.is_empty() || self.owner == Owner::Company || named.contains(&self.owner))
            && fits(&self.agent, &scope.agent_id)
            && fits(&self.namespace, &scope.namespace)
    }
}

fn hashed(what: &impl Serialize) -> Vec<u8> {
    // Writing to memory does not fail. If it did, all facts would be in one list, and each list
    // names its owner.
    let bytes = postcard::to_allocvec(what).unwrap_or_default();
    Sha256::digest(&bytes).iter().copied().take(HASH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(agent: &str, subject: &str, project: &str, namespace: &str) -> Scope {
        let named = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
        Scope {
            agent_id: named(agent),
            subject_id: named(subject),
            project_id: named(project),
            namespace: named(namespace),
            ..Scope::company("acme")
        }
    }

    fn owner(scope: &Scope, kind: Option<Kind>) -> Owner {
        Place::of_write(scope, kind).unwrap().owner
    }

    #[test]
    fn a_write_goes_to_the_owner_that_it_names() {
        let (user, drive) = (Some(Kind::User), Some(Kind::Drive));
        assert_eq!(owner(&scope("", "u", "", ""), None), Owner::Subject("u".to_owned()));
        assert_eq!(
            owner(&scope("a", "u", "p", "n"), None),
            Owner::Subject("u".to_owned()),
            "the narrower one"
        );
        assert_eq!(owner(&scope("a", "u", "p", "n"), drive), Owner::Project("p".to_owned()));
        assert_eq!(owner(&scope("a", "", "p", ""), None), Owner::Project("p".to_owned()));
        assert_eq!(owner(&scope("a", "", "", "n"), None), Owner::Namespace("n".to_owned()));
        assert_eq!(owner(&scope("a", "", "p", ""), user), Owner::Agent("a".to_owned()));
        assert_eq!(owner(&scope("a", "", "", ""), None), Owner::Agent("a".to_owned()));
        assert_eq!(owner(&scope("", "", "", ""), None), Owner::Company);
        for (scope, kind, field) in [
            (scope("", "", "", ""), user, "scope.subjectId"),
            (scope("", "", "p", ""), user, "scope.subjectId"),
            (scope("a", "u", "", ""), drive, "scope.projectId"),
        ] {
            let error = Place::of_write(&scope, kind).unwrap_err();
            assert!(
                matches!(
                    &error, Error::InvalidRequest(wrong) if wrong.field.as_deref() == Some(field),
                ),
                "{error:?}"
            );
        }
    }

    #[test]
    fn scopes_that_name_the_owner_see_the_facts() {
        let sees = |written: &Scope, kind, asked: &Scope| {
            Place::of_write(written, kind).unwrap().is_seen_by(asked)
        };
        let (user, drive) = (Some(Kind::User), Some(Kind::Drive));
        let mine = scope("a", "u", "p", "");
        assert!(sees(&mine, None, &mine) && sees(&mine, drive, &mine));
        assert!(sees(&mine, None, &scope("a", "u", "other", "")), "a user's facts follow the user");
        assert!(!sees(&mine, drive, &scope("a", "u", "other", "")), "and a workspace's do not");
        assert!(!sees(&mine, drive, &scope("a", "u", "", "")));
        assert!(!sees(&mine, None, &scope("a", "other", "p", "")));
        assert!(sees(&mine, drive, &scope("a", "other", "p", "")), "members share the workspace's");
        assert!(
            !sees(&mine, drive, &scope("b", "u", "p", "")),
            "what is one agent's is that agent's"
        );
        let reached = |asked: &Scope| Place::of_write(&mine, drive).unwrap().is_reached_by(asked);
        assert!(
            reached(&scope("a", "u", "", "")) && reached(&scope("a", "", "", "")),
            "by its id, without the project"
        );
        assert!(!reached(&scope("a", "u", "other", "")) && !reached(&scope("b", "", "", "")));
        let everybodys = scope("", "u", "p", "");
        assert!(sees(&everybodys, drive, &scope("b", "u", "p", "")), "and the rest is everybody's");
        assert!(sees(&mine, None, &scope("", "", "", "")), "who names nobody sees all");
        let own = scope("a", "", "", "");
        assert!(sees(&own, None, &own));
        assert!(sees(&own, None, &scope("a", "a", "", "")), "under whichever name");
        assert!(
            sees(&scope("", "a", "", ""), None, &own) && !sees(&scope("", "u", "", ""), None, &own)
        );
        assert!(!sees(&own, None, &scope("b", "", "", "")), "an agent's own facts are not shared");
        for anybody in [&own, &mine, &scope("", "u", "", "n")] {
            assert!(
                sees(&scope("", "", "", ""), None, anybody),
                "the company's facts are everybody's"
            );
        }
        let partitioned = scope("", "u", "", "n");
        assert!(!sees(&partitioned, None, &scope("", "u", "", "m")));
        assert!(sees(&partitioned, user, &scope("", "u", "", "m")), "save_memory narrows");
        assert!(
            sees(&scope("", "", "", "n"), None, &scope("", "", "p", "n")),
            "beside a project's"
        );
    }

    #[test]
    fn lists_of_other_owners_have_other_keys() {
        let key = |scope: &Scope| Place::of_write(scope, None).unwrap().key();
        let scopes = [
            scope("", "x", "", ""),
            scope("x", "", "", ""),
            scope("", "", "x", ""),
            scope("", "", "", "x"),
            scope("x", "x", "", ""),
            scope("", "x", "", "x"),
        ];
        let keys: std::collections::BTreeSet<Vec<u8>> = scopes.iter().map(key).collect();
        assert_eq!(keys.len(), scopes.len());
    }
}
