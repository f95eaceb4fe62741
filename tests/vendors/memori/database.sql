-- A database of Memori 3.2.8, made on 2026-11-23 by tests/vendors/memori/record with Memori's own storage.
BEGIN TRANSACTION;
CREATE TABLE memori_conversation(
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    uuid TEXT NOT NULL,
                    session_id INTEGER NOT NULL,
                    summary TEXT DEFAULT NULL,
                    date_created TEXT NOT NULL DEFAULT (datetime('now')),
                    date_updated TEXT DEFAULT NULL,
                    --
                    CONSTRAINT uk_memori_conversation_session_id UNIQUE (session_id),
                    CONSTRAINT uk_memori_conversation_uuid UNIQUE (uuid),
                    --
                    CONSTRAINT fk_memori_conv_session
                       FOREIGN KEY (session_id)
                        REFERENCES memori_session (id)
                         ON DELETE CASCADE
                );
INSERT INTO "memori_conversation" VALUES(1,'3e0768cf-de2e-40ce-96eb-ee041bfb504c',1,'Ada told what she drinks and where she lives.','2026-11-23 21:39:11',NULL);
CREATE TABLE memori_conversation_message(
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    uuid TEXT NOT NULL,
                    conversation_id INTEGER NOT NULL,
                    role TEXT NOT NULL,
                    type TEXT DEFAULT NULL,
                    content TEXT NOT NULL,
                    date_created TEXT NOT NULL DEFAULT (datetime('now')),
                    date_updated TEXT DEFAULT NULL,
                    --
                    CONSTRAINT uk_memori_conversation_message_conversation_id UNIQUE (conversation_id, id),
                    CONSTRAINT uk_memori_conversation_message_uuid UNIQUE (uuid),
                    --
                    CONSTRAINT fk_memori_conv_msg_conv
                       FOREIGN KEY (conversation_id)
                        REFERENCES memori_conversation (id)
                         ON DELETE CASCADE
                );
INSERT INTO "memori_conversation_message" VALUES(1,'6499a597-04df-4fb0-b332-149c49b96d73',1,'user','text','I drink green tea and moved to Bern.','2026-11-23 21:39:11',NULL);
INSERT INTO "memori_conversation_message" VALUES(2,'4e8d0d50-3a26-4852-9163-275cc1405514',1,'assistant','text','Noted.','2026-11-23 21:39:11',NULL);
CREATE TABLE memori_entity(
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    uuid TEXT NOT NULL,
                    external_id TEXT NOT NULL,
                    date_created TEXT NOT NULL DEFAULT (datetime('now')),
                    date_updated TEXT DEFAULT NULL,
                    --
                    CONSTRAINT uk_memori_entity_external_id UNIQUE (external_id),
                    CONSTRAINT uk_memori_entity_uuid UNIQUE (uuid)
                );
INSERT INTO "memori_entity" VALUES(1,'7627e3bb-8a15-4316-829d-eb452a9a8f47','user/ada','2026-11-23 21:39:11',NULL);
INSERT INTO "memori_entity" VALUES(2,'859df393-ee7e-458d-a70d-ee39559c6de9','bob','2026-11-23 21:39:11',NULL);
CREATE TABLE memori_entity_fact(
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    uuid TEXT NOT NULL,
                    entity_id INTEGER NOT NULL,
                    content TEXT NOT NULL,
                    content_embedding BLOB NOT NULL,
                    num_times INTEGER NOT NULL,
                    date_last_time TEXT NOT NULL,
                    uniq TEXT NOT NULL,
                    date_created TEXT NOT NULL DEFAULT (datetime('now')),
                    date_updated TEXT DEFAULT NULL,
                    --
                    CONSTRAINT uk_memori_entity_fact_entity_id UNIQUE (entity_id, id),
                    CONSTRAINT uk_memori_entity_fact_entity_id_uniq UNIQUE (entity_id, uniq),
                    CONSTRAINT uk_memori_entity_fact_uuid UNIQUE (uuid),
                    --
                    CONSTRAINT fk_memori_ent_fact_entity
                       FOREIGN KEY (entity_id)
                        REFERENCES memori_entity (id)
                         ON DELETE CASCADE
                );
INSERT INTO "memori_entity_fact" VALUES(1,'f10abb8e-d3b8-4692-a498-453b1833c01c',1,'Ada drinks green tea',X'0000003F0000803E',2,'2026-11-23 21:39:11','aec29900cbb4ccf5f479d9d51ba202bb06418ee02a891ec0d2445ca8f0e5ed1b','2026-11-23 21:39:11',NULL);
INSERT INTO "memori_entity_fact" VALUES(2,'7f988035-d623-452b-a043-86bccad47bf9',1,'Ada lives in Bern',X'0000003E0000803F',1,'2026-11-23 21:39:11','815f5eb14c79279fbdcc9268723c86f926498fcf50708ed9d453131bca9703c4','2026-11-23 21:39:11',NULL);
INSERT INTO "memori_entity_fact" VALUES(4,'b40f23cc-ce1c-4ffc-bd12-a4fbb9820898',2,'Bob prefers mail — not calls',X'0000803F00000000',1,'2026-11-23 21:39:11','d141dfb54f20ee89c9081d674fc7eb6471a0a568324cf02f7bb6ffec3f956dec','2026-11-23 21:39:11',NULL);
CREATE TABLE memori_entity_fact_mention(
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    uuid TEXT NOT NULL,
                    entity_id INTEGER NOT NULL,
                    fact_id INTEGER NOT NULL,
                    conversation_id INTEGER NOT NULL,
                    date_created TEXT NOT NULL DEFAULT (datetime('now')),
                    date_updated TEXT DEFAULT NULL,
                    --
                    CONSTRAINT uk_memori_entity_fact_mention_uuid UNIQUE (uuid),
                    CONSTRAINT uk_memori_entity_fact_mention UNIQUE (entity_id, fact_id, conversation_id),
                    --
                    CONSTRAINT fk_memori_ent_fact_mention_entity_fact
                       FOREIGN KEY (entity_id, fact_id)
                        REFERENCES memori_entity_fact (entity_id, id)
                         ON DELETE CASCADE,
                    CONSTRAINT fk_memori_ent_fact_mention_conversation
                       FOREIGN KEY (conversation_id)
                        REFERENCES memori_conversation (id)
                         ON DELETE CASCADE
                );
INSERT INTO "memori_entity_fact_mention" VALUES(1,'5d9cdfbf-8a00-4f7a-843c-4ac46eda51f1',1,1,1,'2026-11-23 21:39:11',NULL);
INSERT INTO "memori_entity_fact_mention" VALUES(2,'dafb77c3-89bf-4734-a553-98d94b398cef',1,2,1,'2026-11-23 21:39:11',NULL);
CREATE TABLE memori_knowledge_graph(
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    uuid TEXT NOT NULL,
                    entity_id INTEGER NOT NULL,
                    subject_id INTEGER NOT NULL,
                    predicate_id INTEGER NOT NULL,
                    object_id INTEGER NOT NULL,
                    num_times INTEGER NOT NULL,
                    date_last_time TEXT NOT NULL,
                    date_created TEXT NOT NULL DEFAULT (datetime('now')),
                    date_updated TEXT DEFAULT NULL,
                    --
                    CONSTRAINT uk_memori_knowledge_graph_entity_id UNIQUE (entity_id, id),
                    CONSTRAINT uk_memori_knowledge_graph_entity_subject_predicate_object UNIQUE (entity_id, subject_id, predicate_id, object_id),
                    CONSTRAINT uk_memori_knowledge_graph_object_id UNIQUE (object_id, id),
                    CONSTRAINT uk_memori_knowledge_graph_predicate_id UNIQUE (predicate_id, id),
                    CONSTRAINT uk_memori_knowledge_graph_subject_id UNIQUE (subject_id, id),
                    CONSTRAINT uk_memori_knowledge_graph_uuid UNIQUE (uuid),
                    --
                    CONSTRAINT fk_memori_know_graph_entity
                       FOREIGN KEY (entity_id)
                        REFERENCES memori_entity (id)
                         ON DELETE CASCADE,
                    CONSTRAINT fk_memori_know_graph_object
                       FOREIGN KEY (object_id)
                        REFERENCES memori_object (id)
                         ON DELETE CASCADE,
                    CONSTRAINT fk_memori_know_graph_predicate
                       FOREIGN KEY (predicate_id)
                        REFERENCES memori_predicate (id)
                         ON DELETE CASCADE,
                    CONSTRAINT fk_memori_know_graph_subject
                       FOREIGN KEY (subject_id)
                        REFERENCES memori_subject (id)
                         ON DELETE CASCADE
                );
INSERT INTO "memori_knowledge_graph" VALUES(1,'efe73dd9-61f4-4d03-9c4c-6ec597591e88',1,1,1,1,1,'2026-11-23 21:39:11','2026-11-23 21:39:11',NULL);
INSERT INTO "memori_knowledge_graph" VALUES(2,'338c797e-a3e5-4b4e-acd6-7b9274a62c1e',1,1,2,2,1,'2026-11-23 21:39:11','2026-11-23 21:39:11',NULL);
CREATE TABLE memori_object(
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    uuid TEXT NOT NULL,
                    name TEXT NOT NULL,
                    type TEXT NOT NULL,
                    uniq TEXT NOT NULL,
                    date_created TEXT NOT NULL DEFAULT (datetime('now')),
                    date_updated TEXT DEFAULT NULL,
                    --
                    CONSTRAINT uk_memori_object_uniq UNIQUE (uniq),
                    CONSTRAINT uk_memori_object_uuid UNIQUE (uuid)
                );
INSERT INTO "memori_object" VALUES(1,'99b6b06c-af7c-46b4-808f-f0527c561063','Bern','place','79a2458386e07b861cba2ce913b43fecc6bd7a791abf169954b98db38360a704','2026-11-23 21:39:11',NULL);
INSERT INTO "memori_object" VALUES(2,'14f98764-7736-4962-a591-61bdb98b4863','Bob','person','0878a4f8b8b06412384f1dd7fd5358b6a54ea5c53186de4c682a08e8ceb6749b','2026-11-23 21:39:11',NULL);
CREATE TABLE memori_predicate(
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    uuid TEXT NOT NULL,
                    content TEXT NOT NULL,
                    uniq TEXT NOT NULL,
                    date_created TEXT NOT NULL DEFAULT (datetime('now')),
                    date_updated TEXT DEFAULT NULL,
                    --
                    CONSTRAINT uk_memori_predicate_uniq UNIQUE (uniq),
                    CONSTRAINT uk_memori_predicate_uuid UNIQUE (uuid)
                );
INSERT INTO "memori_predicate" VALUES(1,'7d6c50b1-fd20-4357-8947-5580abd9c492','lives in','f73a9741fa46deb8867950d62b148abb5ad191c7328276ad80b2968571050e39','2026-11-23 21:39:11',NULL);
INSERT INTO "memori_predicate" VALUES(2,'d5d49788-dffe-406c-b43b-666ed8a729b5','works with','b30e1e8b8e67c096adf70c9838b5208898fbb2317d422082a954b0ce01ff92c5','2026-11-23 21:39:11',NULL);
CREATE TABLE memori_process(
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    uuid TEXT NOT NULL,
                    external_id TEXT NOT NULL,
                    date_created TEXT NOT NULL DEFAULT (datetime('now')),
                    date_updated TEXT DEFAULT NULL,
                    --
                    CONSTRAINT uk_memori_process_external_id UNIQUE (external_id),
                    CONSTRAINT uk_memori_process_uuid UNIQUE (uuid)
                );
INSERT INTO "memori_process" VALUES(1,'a9f7e699-ee6a-4025-8e3c-74e4637e6d7f','shop-agent','2026-11-23 21:39:11',NULL);
CREATE TABLE memori_process_attribute(
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    uuid TEXT NOT NULL,
                    process_id INTEGER NOT NULL,
                    content TEXT NOT NULL,
                    num_times INTEGER NOT NULL,
                    date_last_time TEXT NOT NULL,
                    uniq TEXT NOT NULL,
                    date_created TEXT NOT NULL DEFAULT (datetime('now')),
                    date_updated TEXT DEFAULT NULL,
                    --
                    CONSTRAINT uk_memori_process_attribute_process_id UNIQUE (process_id, id),
                    CONSTRAINT uk_memori_process_attribute_process_id_uniq UNIQUE (process_id, uniq),
                    CONSTRAINT uk_memori_process_attribute_uuid UNIQUE (uuid),
                    --
                    CONSTRAINT fk_memori_proc_attribute
                       FOREIGN KEY (process_id)
                        REFERENCES memori_process (id)
                         ON DELETE CASCADE
                );
INSERT INTO "memori_process_attribute" VALUES(1,'b7b9aa75-318d-42c4-a8e6-cc9fb3f1255b',1,'Answers in German',1,'2026-11-23 21:39:11','a4cf38ecf714cf68fc67a16884ae9f1c02dbaddb2cb1eb08d913e56b2cd511b4','2026-11-23 21:39:11',NULL);
CREATE TABLE memori_schema_version(
                    num INTEGER NOT NULL PRIMARY KEY
                );
INSERT INTO "memori_schema_version" VALUES(2);
CREATE TABLE memori_session(
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    uuid TEXT NOT NULL,
                    entity_id INTEGER DEFAULT NULL,
                    process_id INTEGER DEFAULT NULL,
                    date_created TEXT NOT NULL DEFAULT (datetime('now')),
                    date_updated TEXT DEFAULT NULL,
                    --
                    CONSTRAINT uk_memori_session_entity_id UNIQUE (entity_id, id),
                    CONSTRAINT uk_memori_session_process_id UNIQUE (process_id, id),
                    CONSTRAINT uk_memori_session_uuid UNIQUE (uuid),
                    --
                    CONSTRAINT fk_memori_sess_entity
                       FOREIGN KEY (entity_id)
                        REFERENCES memori_entity (id)
                         ON DELETE CASCADE,
                    CONSTRAINT fk_memori_sess_process
                       FOREIGN KEY (process_id)
                        REFERENCES memori_process (id)
                         ON DELETE CASCADE
                );
INSERT INTO "memori_session" VALUES(1,'7a0c3c5e-2f57-4b0c-9d6e-4f9f2a7d1c11',1,1,'2026-11-23 21:39:11',NULL);
CREATE TABLE memori_subject(
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    uuid TEXT NOT NULL,
                    name TEXT NOT NULL,
                    type TEXT NOT NULL,
                    uniq TEXT NOT NULL,
                    date_created TEXT NOT NULL DEFAULT (datetime('now')),
                    date_updated TEXT DEFAULT NULL,
                    --
                    CONSTRAINT uk_memori_subject_uniq UNIQUE (uniq),
                    CONSTRAINT uk_memori_subject_uuid UNIQUE (uuid)
                );
INSERT INTO "memori_subject" VALUES(1,'d827ec0b-0ac8-4024-b8cc-0e2df881a347','Ada','person','0a8ba4131f57dda87e664e20117bad1b619af1036228adf5cbc03e0523a197c9','2026-11-23 21:39:11',NULL);
CREATE INDEX idx_memori_entity_fact_entity_id_freq
                ON memori_entity_fact (entity_id, num_times DESC, date_last_time DESC)
            ;
CREATE INDEX idx_memori_entity_fact_embedding_search
                ON memori_entity_fact (entity_id, id)
            ;
CREATE INDEX idx_memori_ent_fact_mention_entity_conversation
                ON memori_entity_fact_mention (entity_id, conversation_id)
            ;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('memori_entity',2);
INSERT INTO "sqlite_sequence" VALUES('memori_process',1);
INSERT INTO "sqlite_sequence" VALUES('memori_session',1);
INSERT INTO "sqlite_sequence" VALUES('memori_conversation',1);
INSERT INTO "sqlite_sequence" VALUES('memori_conversation_message',2);
INSERT INTO "sqlite_sequence" VALUES('memori_entity_fact',4);
INSERT INTO "sqlite_sequence" VALUES('memori_entity_fact_mention',3);
INSERT INTO "sqlite_sequence" VALUES('memori_subject',2);
INSERT INTO "sqlite_sequence" VALUES('memori_predicate',2);
INSERT INTO "sqlite_sequence" VALUES('memori_object',2);
INSERT INTO "sqlite_sequence" VALUES('memori_knowledge_graph',2);
INSERT INTO "sqlite_sequence" VALUES('memori_process_attribute',1);
COMMIT;
