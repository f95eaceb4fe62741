-- A company is in one of 16 groups, by its name. Each group has a home, which serves all companies in it. The homes of
-- groups are rows of `homes` with negative numbers: -1 is that of the host's own rows, and -1 - n that of group n.
DELETE FROM homes WHERE company = 0;
-- A host of an earlier version cannot lead any more: it would lead all groups.
ALTER TABLE homes ADD CHECK (company <> 0);

-- The cast of a text to bytes is not immutable, and `decode` reads backslashes.
ALTER TABLE companies ADD COLUMN company_group smallint GENERATED ALWAYS AS
    (get_byte(sha256(decode(replace(name, E'\\', E'\\\\'), 'escape')), 0) % 16 + 1) STORED NOT NULL;
CREATE INDEX companies_group ON companies (company_group, id);

-- Due entries have a kind for each group, so that a home reads its own in the order of time: 200 + n.
DROP INDEX entries_due;
UPDATE entries SET kind = 200 + coalesce((SELECT company_group FROM companies WHERE id = company), 0) WHERE kind = 10;
CREATE INDEX entries_due ON entries (kind, key) WHERE kind BETWEEN 200 AND 216;

-- Which company a token belongs to, by the digest of its value. A quote inside of a text of the JSON has a backslash.
CREATE INDEX entries_token ON entries (substring(encode(value, 'escape') FROM '"digest":"([0-9a-f]{64})"'))
    WHERE kind = 7;
CREATE INDEX entries_token_before ON entries (substring(encode(value, 'escape') FROM '"previous":"([0-9a-f]{64})"'))
    WHERE kind = 7;

-- Whether a host gives its groups to others, because it stops, or because an operator wants it.
ALTER TABLE hosts ADD COLUMN is_leaving boolean NOT NULL DEFAULT false,
    ADD COLUMN is_draining boolean NOT NULL DEFAULT false;

-- A build that was put a moment ago may be needed by a binding that is not written yet.
ALTER TABLE builds ADD COLUMN put_at timestamptz NOT NULL DEFAULT clock_timestamp();
