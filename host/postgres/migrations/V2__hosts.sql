-- The hosts that use the database. One that has not renewed its lease for 3 seconds may be replaced.
CREATE TABLE hosts (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    -- Where other hosts reach it; NULL: nowhere.
    peer_url text,
    version text NOT NULL,
    -- A digest of the operator's token.
    token text NOT NULL,
    joined_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
);

-- Values that all hosts must have alike, such as digests of their keys.
CREATE TABLE agreed (
    name text PRIMARY KEY,
    value text NOT NULL
);

-- The home of company 0, which has no row of its own, is the host that leads.
ALTER TABLE homes DROP CONSTRAINT homes_company_fkey;
