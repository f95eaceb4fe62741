-- An index of arrays has an entry for an empty array, too. Most operations have no issue, run or record, so most entries
-- were of no use, and cost WAL, space and time of VACUUM.
DROP INDEX operations_issues, operations_runs, operations_records;
CREATE INDEX operations_issues ON operations USING gin (issues) WITH (gin_pending_list_limit = 256)
    WHERE issues <> '{}';
CREATE INDEX operations_runs ON operations USING gin (runs) WITH (gin_pending_list_limit = 256)
    WHERE runs <> '{}';
CREATE INDEX operations_records ON operations USING gin (records) WITH (gin_pending_list_limit = 256)
    WHERE records <> '{}';

-- PostgreSQL writes all index entries of a changed row anew if an index uses a changed column, and these two used `value`.
-- Columns of their own stay the same when a value changes. Adding them rewrites the table once.
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
