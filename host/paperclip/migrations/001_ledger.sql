-- What memhost has of Paperclip. Rows name the store that they are about, because a purge of the plugin leaves this
-- schema and takes another data directory.
CREATE TABLE IF NOT EXISTS plugin_memhost_d7b1543049.stores (
  store text PRIMARY KEY,
  directory text,
  first_seen timestamptz NOT NULL DEFAULT now(),
  last_seen timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS plugin_memhost_d7b1543049.ledger (
  store text NOT NULL,
  kind text NOT NULL,
  source_id text NOT NULL,
  company_id uuid NOT NULL,
  issue_id uuid,
  document_key text,
  revision text NOT NULL,
  status text NOT NULL,
  parts integer NOT NULL DEFAULT 1,
  attempts integer NOT NULL DEFAULT 1,
  error text,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (store, kind, source_id)
);
CREATE INDEX IF NOT EXISTS ledger_company ON plugin_memhost_d7b1543049.ledger (store, company_id, kind);
CREATE TABLE IF NOT EXISTS plugin_memhost_d7b1543049.companies (
  store text NOT NULL,
  company_id uuid NOT NULL,
  gone_since timestamptz,
  settings jsonb,
  enabled jsonb,
  backfill_after timestamptz,
  cost_cursor text,
  closed jsonb,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (store, company_id)
);
CREATE TABLE IF NOT EXISTS plugin_memhost_d7b1543049.costs (
  store text NOT NULL,
  event_id text NOT NULL,
  company_id uuid NOT NULL,
  entered bigserial,
  form text NOT NULL,
  account text NOT NULL,
  status text NOT NULL,
  cents integer NOT NULL,
  rest integer NOT NULL,
  body jsonb NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (store, event_id)
);
CREATE TABLE IF NOT EXISTS plugin_memhost_d7b1543049.recalls (
  store text NOT NULL,
  id text NOT NULL,
  company_id uuid NOT NULL,
  issue_id uuid,
  agent_id uuid,
  run_id uuid,
  way text NOT NULL,
  found integer NOT NULL DEFAULT 0,
  skipped text,
  records jsonb NOT NULL DEFAULT '[]'::jsonb,
  marks jsonb NOT NULL DEFAULT '{}'::jsonb,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (store, id)
);
CREATE INDEX IF NOT EXISTS recalls_issue ON plugin_memhost_d7b1543049.recalls (store, company_id, issue_id, at);
