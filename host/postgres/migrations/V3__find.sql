-- Whether an operation matches a filter is read in the index: its row may be on a page of its own.
ALTER TABLE operations DROP CONSTRAINT operations_pkey,
    ADD PRIMARY KEY (company, number) INCLUDE (started_us, kind, outcome, hook, source);
DROP INDEX operations_agent, operations_binding;
CREATE INDEX operations_agent ON operations (company, agent, number)
    INCLUDE (started_us, kind, outcome, hook, source);
CREATE INDEX operations_binding ON operations (company, binding_id, number)
    INCLUDE (started_us, kind, outcome, hook, source);

-- An index alone answers only for pages that VACUUM has seen. By default it would wait for a fifth of the table. It reads
-- all of the three indexes of arrays each time, so it must not come too often either.
ALTER TABLE operations SET (autovacuum_vacuum_insert_scale_factor = 0.01, autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

-- Every search reads what waits for these indexes.
ALTER INDEX operations_issues SET (gin_pending_list_limit = 256);
ALTER INDEX operations_runs SET (gin_pending_list_limit = 256);
ALTER INDEX operations_records SET (gin_pending_list_limit = 256);
