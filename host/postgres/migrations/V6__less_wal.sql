-- An index of arrays has an entry for an empty array, too, and most operations have no issue, run or record: each cost
-- every operation WAL, space, and a part of what VACUUM reads.
DROP INDEX operations_issues, operations_runs, operations_records;
CREATE INDEX operations_issues ON operations USING gin (issues) WITH (gin_pending_list_limit = 256)
    WHERE issues <> '{}';
CREATE INDEX operations_runs ON operations USING gin (runs) WITH (gin_pending_list_limit = 256)
    WHERE runs <> '{}';
CREATE INDEX operations_records ON operations USING gin (records) WITH (gin_pending_list_limit = 256)
    WHERE records <> '{}';

-- An index over an expression of `value` made each change of any row write all of its index entries anew. A column that
-- stays the same does not. The table is written once for it.
DROP INDEX entries_token, entries_token_before;
ALTER TABLE entries
    ADD COLUMN token text GENERATED ALWAYS AS (CASE WHEN kind = 7
        THEN substring(encode(value, 'escape') FROM '"digest":"([0-9a-f]{64})"') END) STORED,
    ADD COLUMN token_before text GENERATED ALWAYS AS (CASE WHEN kind = 7
        THEN substring(encode(value, 'escape') FROM '"previous":"([0-9a-f]{64})"') END) STORED;
CREATE INDEX entries_token ON entries (token) WHERE token IS NOT NULL;
CREATE INDEX entries_token_before ON entries (token_before) WHERE token_before IS NOT NULL;
-- The next version of a row finds room on the row's page.
ALTER TABLE entries SET (fillfactor = 90);
