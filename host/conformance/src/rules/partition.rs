//! Rules of partitions: a record of one agent, subject or namespace is not returned for another.

use super::query::has;
use crate::material::text;
use crate::rule::{Rule, provider, rules, types};
use crate::subject::Subject;
use crate::verdict::{Stop, Verdict, failed, holds};
use memhost_types::{HostWork, RecordHandle, Scope};

pub(super) const PARTITIONS: &str = "a record written with one of them set must not be returned to \
                                     a scope that has that field set to something else.";

pub(super) const RULES: &[Rule] = rules! { None;
    "PAR-01" "Queries separate agents"
        "One agent's query does not find another agent's record."
        types("scope", PARTITIONS)
        => binding(agents).left(&[HostWork::AgentPartition]);
    "PAR-02" "Queries separate subjects"
        "A query in the scope of one subject does not find another subject's record."
        types("scope", PARTITIONS)
        => binding(subjects).left(&[HostWork::SubjectPartition]);
    "PAR-03" "Queries separate namespaces"
        "A query in one namespace does not find a record of another."
        types("scope", PARTITIONS)
        => binding(namespaces).left(&[HostWork::NamespacePartition]);
    "PAR-04" "Lists separate partitions"
        "A record of one agent and subject is not listed for another agent, nor for another \
         subject."
        types("scope", PARTITIONS)
        => binding(lists).left(&[HostWork::AgentPartition, HostWork::SubjectPartition]);
    "PAR-05" "An id does not reach into another partition"
        "`get-record` with the id of another agent's or subject's record answers none."
        provider("get-record", "One record, or none if it does not exist or belongs to another \
                                partition of the scope.")
        => binding(gets).left(&[HostWork::AgentPartition, HostWork::SubjectPartition]);
    "PAR-06" "What is of no agent is seen by each"
        "The suite writes a record without an agent. A query, a list and `get-record` of an agent \
         have it, and so has the \
         query of a scope without an agent that of an agent's record."
        types("scope",
            "A record that was written without one is returned whatever the scope has there, and a \
             scope without one sees \
             the records of all its values.")
        => binding(everybodys);
};

/// Fails if a query in the other scope returns a record of the own scope.
async fn not_found_in(subject: &Subject, own: Scope, other: Scope) -> Verdict {
    let handle = subject.put(own.clone(), &text(0)).await?;
    let found = subject.query(other, &text(0)).await?;
    holds(!has(&found, &handle), || format!("a query returns `{}`", handle.provider_record_id))
}

async fn agents(subject: &Subject) -> Verdict {
    not_found_in(subject, subject.scope(), subject.other_agent()).await
}

/// The same scope with another subject.
pub(super) fn other_subject(subject: &Subject) -> Scope {
    Scope { subject_id: Some(subject.name("somebody-else")), ..subject.scope() }
}

async fn subjects(subject: &Subject) -> Verdict {
    not_found_in(subject, subject.scope(), other_subject(subject)).await
}

pub(super) fn in_namespace(subject: &Subject, name: &str) -> Scope {
    Scope { namespace: Some(subject.name(name)), ..subject.scope() }
}

async fn namespaces(subject: &Subject) -> Verdict {
    not_found_in(subject, in_namespace(subject, "one"), in_namespace(subject, "two")).await
}

async fn written(subject: &Subject) -> Result<(RecordHandle, [Scope; 2]), Stop> {
    let handle = subject.put(subject.scope(), &text(0)).await?;
    Ok((handle, [subject.other_agent(), other_subject(subject)]))
}

async fn lists(subject: &Subject) -> Verdict {
    let (handle, others) = written(subject).await?;
    for other in others {
        let listed = subject.list(other).await?;
        holds(!has(&listed, &handle), || format!("the list has `{}`", handle.provider_record_id))?;
    }
    Ok(())
}

async fn gets(subject: &Subject) -> Verdict {
    let (handle, others) = written(subject).await?;
    for other in others {
        if subject.get(other, &handle).await?.is_some() {
            return failed(format!("`get-record` returns `{}`", handle.provider_record_id));
        }
    }
    Ok(())
}

async fn everybodys(subject: &Subject) -> Verdict {
    let company = Scope { agent_id: None, ..subject.scope() };
    let shared = subject.put(company.clone(), &text(0)).await?;
    let id = &shared.provider_record_id;
    for agent in [subject.scope(), subject.other_agent()] {
        let name = agent.agent_id.clone();
        let found = has(&subject.query(agent.clone(), &text(0)).await?, &shared);
        holds(found, || {
            format!("a query of {name:?} does not return `{id}`, which is of no agent")
        })?;
        holds(has(&subject.list(agent.clone()).await?, &shared), || {
            format!("the list of {name:?} does not have `{id}`")
        })?;
        holds(subject.get(agent, &shared).await?.is_some(), || {
            format!("`get-record` of {name:?} does not have `{id}`")
        })?;
    }
    let own = subject.put(subject.scope(), &text(1)).await?;
    holds(has(&subject.query(company, &text(1)).await?, &own), || {
        format!("a query without an agent does not return `{}`", own.provider_record_id)
    })
}
