-- A row of the ledger by what it is about. PostgreSQL knows nothing of a table that has just been filled, and would as soon
-- read all rows of a kind through another index for each row of Paperclip.
CREATE INDEX IF NOT EXISTS ledger_source ON plugin_memhost_d7b1543049.ledger (source_id);
