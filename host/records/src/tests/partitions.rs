//! Partitions that a provider leaves to the host.

use super::*;
use crate::HostPartitions;
use memhost_types::{Declarations, HostWork};

fn leaves(work: &[HostWork]) -> Declarations {
    Declarations { left_to_host: work.to_vec(), ..Declarations::default() }
}

fn namespace(name: &str) -> Scope {
    Scope { namespace: Some(name.to_owned()), ..scope_of(&Reader::Nobody) }
}

async fn kept(room: &Room, work: &[HostWork], scope: &Scope, ids: &[&str]) -> Vec<String> {
    let declarations = leaves(work);
    let partitions = HostPartitions::of(&declarations, scope);
    let mut found = ids.iter().map(|id| visible::snippet(id, None)).collect();
    room.records.keep_partitions(&room.binding, &partitions, &mut found).await.unwrap();
    found.iter().map(|snippet| snippet.handle.provider_record_id.to_string()).collect()
}

#[test]
fn a_provider_that_keeps_its_partitions_leaves_none() {
    for scope in [scope_of(&agent("ada")), scope_of(&person("u1")), namespace("n")] {
        assert!(HostPartitions::of(&leaves(&[]), &scope).is_empty());
    }
    let declarations = leaves(&[HostWork::AgentPartition]);
    assert!(!HostPartitions::of(&declarations, &scope_of(&agent("ada"))).is_empty());
    assert!(HostPartitions::of(&declarations, &scope_of(&person("u1"))).is_empty());
}

#[tokio::test]
async fn records_of_another_agent_are_removed() {
    let room = Room::new().await;
    room.write(&agent("ada"), &["ada"]).await;
    room.write(&agent("carol"), &["carol"]).await;
    room.write(&Reader::Nobody, &["all"]).await;
    let (work, scope) = ([HostWork::AgentPartition], scope_of(&agent("ada")));
    let ids = ["ada", "carol", "all", "unknown"];
    assert_eq!(kept(&room, &work, &scope, &ids).await, ["ada", "all"]);
    assert_eq!(kept(&room, &[], &scope, &ids).await.len(), 4);
    assert_eq!(kept(&room, &work, &scope_of(&Reader::Nobody), &ids).await.len(), 4);
}

#[tokio::test]
async fn the_agent_of_a_shared_record_is_no_partition() {
    let room = Room::new().await;
    let write = room.begin(&agent("carol"), Some(Visibility::Company)).await;
    room.end(write, &["r"]).await;
    let work = [HostWork::AgentPartition];
    assert_eq!(kept(&room, &work, &scope_of(&agent("ada")), &["r"]).await, ["r"]);
}

#[tokio::test]
async fn subjects_and_namespaces_are_partitions_of_shared_records() {
    let room = Room::new().await;
    let mut row = row("r", &Reader::Nobody);
    row.scope.subject_id = Some("u1".to_owned());
    row.scope.namespace = Some("n1".to_owned());
    room.put(room.records.write(&row, None).unwrap()).await;
    let work = [HostWork::SubjectPartition, HostWork::NamespacePartition];
    assert_eq!(kept(&room, &work, &scope_of(&person("u1")), &["r"]).await, ["r"]);
    assert!(kept(&room, &work, &scope_of(&person("u2")), &["r"]).await.is_empty());
    assert_eq!(kept(&room, &work, &namespace("n1"), &["r"]).await, ["r"]);
    assert!(kept(&room, &work, &namespace("n2"), &["r"]).await.is_empty());
}

#[tokio::test]
async fn what_the_provider_says_counts_where_there_is_no_row() {
    let room = Room::new().await;
    let declarations = leaves(&[HostWork::AgentPartition]);
    let scope = scope_of(&agent("ada"));
    let partitions = HostPartitions::of(&declarations, &scope);
    let said = |id, reader: &Reader| visible::snippet(id, Some(scope_of(reader)));
    let mut found = vec![said("r1", &agent("ada")), said("r2", &agent("carol"))];
    room.records.keep_partitions(&room.binding, &partitions, &mut found).await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(!room.records.is_in(&room.binding, &partitions, &record("r1")).await.unwrap());
    let none = HostPartitions::default();
    assert!(room.records.is_in(&room.binding, &none, &record("r1")).await.unwrap());
}
