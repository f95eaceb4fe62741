-- Companies by number. A number is given once and never again.
CREATE TABLE companies (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    -- The bytes that the host keeps of the company.
    held bigint NOT NULL DEFAULT 0,
    -- The last number of an operation that is not in `operations` any more; later ones continue behind it.
    last_number bigint NOT NULL DEFAULT 0
);

-- Which host serves a company. Whoever takes a company over raises the token, and no transaction with another token
-- writes a row of the company from then on.
CREATE TABLE homes (
    company bigint PRIMARY KEY REFERENCES companies (id),
    host uuid NOT NULL,
    token bigint NOT NULL
);

-- The number of the last batch that each connection for writing has committed: it says after a broken connection
-- whether the commit happened.
CREATE TABLE lanes (
    host uuid NOT NULL,
    lane integer NOT NULL,
    batch bigint NOT NULL,
    PRIMARY KEY (host, lane)
);

-- Small rows. The company 0 is the host itself. Values are bytes: `jsonb` refuses \u0000.
CREATE TABLE entries (
    company bigint NOT NULL,
    kind smallint NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (company, kind, key)
);
-- Due entries of all companies in the order of time.
CREATE INDEX entries_due ON entries (key) WHERE kind = 10;

CREATE TABLE operations (
    company bigint NOT NULL,
    number bigint NOT NULL,
    id uuid NOT NULL,
    home_token bigint NOT NULL,
    started_us bigint NOT NULL,
    kind text NOT NULL,
    outcome text NOT NULL,
    -- How often it is counted in the sums.
    count bigint NOT NULL,
    agent text,
    project text,
    session text,
    binding_key text,
    binding_id uuid,
    provider text,
    hook text,
    source text,
    keeps_text boolean NOT NULL,
    issues text[] NOT NULL,
    runs text[] NOT NULL,
    records text[] NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (company, number)
);
CREATE INDEX operations_started ON operations (company, started_us);
CREATE INDEX operations_agent ON operations (company, agent, number) INCLUDE (kind, outcome, hook, source);
CREATE INDEX operations_binding ON operations (company, binding_id, number) INCLUDE (kind, outcome, hook, source);
CREATE INDEX operations_session ON operations (company, session, number) WHERE session IS NOT NULL;
CREATE INDEX operations_issues ON operations USING gin (issues);
CREATE INDEX operations_runs ON operations USING gin (runs);
CREATE INDEX operations_records ON operations USING gin (records);
CREATE INDEX operations_cut ON operations (company, number) WHERE outcome IN ('in_progress', 'interrupted');
