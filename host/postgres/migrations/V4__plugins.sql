-- Components that hosts have brought.
CREATE TABLE builds (
    digest text PRIMARY KEY,
    component bytea NOT NULL,
    -- The signature file that was beside it, if there was one.
    signature bytea
);
-- Compressing them again gains little.
ALTER TABLE builds ALTER COLUMN component SET STORAGE EXTERNAL;

-- The files of the plugins directory of each host. A place is a data directory: it outlives the host's process.
CREATE TABLE plugins (
    place uuid NOT NULL,
    name text NOT NULL,
    digest text NOT NULL REFERENCES builds (digest),
    -- When the file was written, in microseconds since 1970: the newer of two builds of one version serves.
    written_us bigint NOT NULL,
    PRIMARY KEY (place, name)
);

ALTER TABLE hosts ADD COLUMN place uuid;
