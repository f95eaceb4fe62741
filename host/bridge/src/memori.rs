//! The tables of Memori, with the rows that they refer to. The names were looked up in a database
//! that version 3.2.8 makes, whose schema has the number 2.

pub(crate) const FACTS: &str = "memori_entity_fact";

/// Tables and questions. A relation is left out whose sentence is a fact of the same entity: Memori
/// makes facts of relations.
pub(crate) const TABLES: &[(&str, &str)] = &[
    (
        FACTS,
        "SELECT r.id, r.uuid, r.content, r.num_times, r.date_last_time, r.date_created, \
         e.external_id AS entity
         FROM memori_entity_fact r JOIN memori_entity e ON e.id = r.entity_id WHERE true",
    ),
    (
        "memori_process_attribute",
        "SELECT r.id, r.uuid, r.content, r.num_times, r.date_last_time, r.date_created, \
         p.external_id AS process
         FROM memori_process_attribute r JOIN memori_process p ON p.id = r.process_id WHERE true",
    ),
    (
        "memori_knowledge_graph",
        "SELECT r.id, r.uuid, s.name || ' ' || p.content || ' ' || o.name AS content, s.name AS \
         subject,
           s.type AS subject_type, p.content AS predicate, o.name AS object, o.type AS \
           object_type, r.num_times,
           r.date_last_time, r.date_created, e.external_id AS entity
         FROM memori_knowledge_graph r JOIN memori_entity e ON e.id = r.entity_id
           JOIN memori_subject s ON s.id = r.subject_id JOIN memori_predicate p ON p.id = \
           r.predicate_id
           JOIN memori_object o ON o.id = r.object_id
         WHERE NOT EXISTS (SELECT 1 FROM memori_entity_fact f WHERE f.entity_id = r.entity_id
           AND f.content = s.name || ' ' || p.content || ' ' || o.name)",
    ),
    (
        "memori_conversation",
        "SELECT r.id, r.uuid, r.summary AS content, r.date_created, s.uuid AS session, \
         e.external_id AS entity,
           p.external_id AS process,
           (SELECT count(*) FROM memori_conversation_message m WHERE m.conversation_id = r.id) AS \
           messages
         FROM memori_conversation r JOIN memori_session s ON s.id = r.session_id
           LEFT JOIN memori_entity e ON e.id = s.entity_id LEFT JOIN memori_process p ON p.id = \
           s.process_id
         WHERE true",
    ),
];
