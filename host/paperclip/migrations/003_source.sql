-- For the row of one source. PostgreSQL knows nothing of a table that has just been filled: for each row of Paperclip it
-- would read all rows of a kind through one of the other indexes.
CREATE INDEX IF NOT EXISTS ledger_source ON plugin_memhost_d7b1543049.ledger (source_id);
