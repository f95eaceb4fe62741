// What memhost has of Paperclip: rows in the plugin's own database namespace.
import { TROUBLES } from "./bounds";
import type { Host } from "./paperclip/host";

/** What memhost's budget of a day was before it was closed. */
export interface Closed {
  limitCents: number | null;
  warnShare: number | null;
}

export type Kind = "comment" | "document" | "run";
/** `waiting`: memhost does not take it now. `outside`: of an agent that is not in the pilot. */
export type Status = "sent" | "empty" | "waiting" | "refused" | "outside" | "forgotten";

export interface Mark {
  kind: Kind;
  source_id: string;
  company_id: string;
  issue_id: string | null;
  document_key: string | null;
  revision: string;
  status: Status;
  parts: number;
  error: string | null;
}

export interface CompanyRow {
  company_id: string;
  gone_since: string | null;
  settings: Record<string, unknown> | null;
  enabled: Record<string, unknown> | null;
  /** Only what is newer is taken in, until a person starts the backfill; null: everything. */
  backfill_after: string | null;
  /** Whether it is known if its memory is metered; before that nothing of it is taken in. */
  enrolled: boolean;
  /** Behind the last cost event that was read. */
  cost_cursor: string | null;
  /** Set while Paperclip's budget keeps memory from spending. */
  closed: Closed | null;
}

export class Ledger {
  /** The store that rows are about; set when memhost is up. */
  store = "";
  readonly namespace: string;

  constructor(private readonly host: Host) {
    if (!/^[a-z_][a-z0-9_]*$/.test(host.db.namespace)) throw new Error(`${host.db.namespace} is not a schema`);
    this.namespace = host.db.namespace;
  }

  async use(store: string, directory: string | null): Promise<void> {
    this.store = store;
    await this.host.db.execute(
      `INSERT INTO ${this.namespace}.stores (store, directory) VALUES ($1, $2)
       ON CONFLICT (store) DO UPDATE SET directory = excluded.directory, last_seen = now()`,
      [store, directory],
    );
  }

  /** Says where the directory of a store is now. */
  async moved(store: string, directory: string): Promise<void> {
    await this.host.db.execute(`UPDATE ${this.namespace}.stores SET directory = $1 WHERE store = $2`, [
      directory,
      store,
    ]);
  }

  async mark(marks: Mark[]): Promise<void> {
    if (marks.length === 0) return;
    await this.host.db.execute(
      `INSERT INTO ${this.namespace}.ledger AS l (store, kind, source_id, company_id, issue_id, document_key, revision, status, parts, error)
       SELECT $1::text, m.kind, m.source_id, m.company_id, m.issue_id, m.document_key, m.revision, m.status, m.parts, m.error
       FROM jsonb_to_recordset($2::jsonb) AS m(kind text, source_id text, company_id uuid, issue_id uuid, document_key text, revision text, status text, parts integer, error text)
       ON CONFLICT (store, kind, source_id) DO UPDATE SET revision = excluded.revision, status = excluded.status, parts = excluded.parts,
         issue_id = excluded.issue_id, document_key = excluded.document_key, error = excluded.error, attempts = l.attempts + 1, updated_at = now()`,
      [this.store, JSON.stringify(marks)],
    );
  }

  async setStatus(kind: Kind, companyId: string, ids: string[], status: Status): Promise<void> {
    if (ids.length === 0) return;
    await this.host.db.execute(
      `UPDATE ${this.namespace}.ledger SET status = $1, updated_at = now()
       WHERE store = $2 AND kind = $3 AND company_id = $4::uuid AND source_id IN (SELECT jsonb_array_elements_text($5::jsonb))`,
      [status, this.store, kind, companyId, JSON.stringify(ids)],
    );
  }

  async forgetIssue(companyId: string, issueId: string): Promise<void> {
    await this.host.db.execute(
      `UPDATE ${this.namespace}.ledger SET status = 'forgotten', updated_at = now() WHERE store = $1 AND company_id = $2::uuid AND issue_id = $3::uuid`,
      [this.store, companyId, issueId],
    );
  }

  /** A query of the row of one source, for LATERAL; `$1` is the store. Only the index of `source_id` fits it. */
  lookup(kind: Kind, sourceId: string): string {
    return `SELECT * FROM ${this.namespace}.ledger own WHERE own.source_id = ${sourceId} AND own.kind || '' = '${kind}' AND own.store || '' = $1 LIMIT 1`;
  }

  /** Lets everything that was not taken be tried again at once. */
  async retry(companyId: string): Promise<void> {
    await this.host.db.execute(
      `DELETE FROM ${this.namespace}.ledger WHERE store = $1 AND company_id = $2::uuid AND status IN ('waiting', 'refused')`,
      [this.store, companyId],
    );
  }

  /** Lets what the pilot left out be looked at again. */
  async widen(companyId: string): Promise<void> {
    await this.host.db.execute(
      `DELETE FROM ${this.namespace}.ledger WHERE store = $1 AND company_id = $2::uuid AND status = 'outside'`,
      [this.store, companyId],
    );
  }

  async companies(): Promise<CompanyRow[]> {
    return this.host.db.query<CompanyRow>(
      `SELECT company_id, gone_since, settings, enabled, backfill_after, enrolled, cost_cursor, closed FROM ${this.namespace}.companies WHERE store = $1`,
      [this.store],
    );
  }

  async company(companyId: string): Promise<CompanyRow | null> {
    return (await this.companies()).find((row) => row.company_id === companyId) ?? null;
  }

  /** Changes columns of a company's row, which is made if it is missing. */
  async setCompany(companyId: string, columns: Partial<Omit<CompanyRow, "company_id">>): Promise<void> {
    const names = Object.keys(columns) as (keyof typeof columns)[];
    const types: Record<string, string> = {
      gone_since: "timestamptz",
      settings: "jsonb",
      enabled: "jsonb",
      backfill_after: "timestamptz",
      enrolled: "boolean",
      cost_cursor: "text",
      closed: "jsonb",
    };
    const values = names.map((name) =>
      types[name] === "jsonb" && columns[name] !== null ? JSON.stringify(columns[name]) : (columns[name] ?? null),
    );
    const list = names.map((name) => `, ${name}`).join("");
    const places = names.map((name, index) => `, $${index + 3}::${types[name]}`).join("");
    const changes = names.map((name) => `${name} = excluded.${name}`).join(", ");
    await this.host.db.execute(
      `INSERT INTO ${this.namespace}.companies (store, company_id${list}) VALUES ($1, $2::uuid${places})
       ON CONFLICT (store, company_id) DO ${changes === "" ? "NOTHING" : `UPDATE SET ${changes}, updated_at = now()`}`,
      [this.store, companyId, ...values],
    );
  }

  /** The companies of Paperclip that have settings, saved at whichever server. Paperclip logs an error for a question about another one. */
  async configured(): Promise<string[]> {
    const rows = await this.host.db.query<{ id: string }>(
      `SELECT DISTINCT k.company_id::text AS id FROM ${this.namespace}.companies k JOIN public.companies c ON c.id = k.company_id WHERE k.settings IS NOT NULL`,
      [],
    );
    return rows.map(({ id }) => id);
  }

  /** The time of Paperclip's database: the clocks of its servers may differ. */
  async now(): Promise<string> {
    const [row] = await this.host.db.query<{ now: string }>("SELECT now()::text AS now", []);
    return row?.now ?? new Date().toISOString();
  }

  /** Removes all rows of a company. */
  async drop(companyId: string): Promise<void> {
    for (const table of ["ledger", "costs", "recalls", "companies"]) {
      // Settings that were told before memory was up are in the rows of the store "".
      await this.host.db.execute(
        `DELETE FROM ${this.namespace}.${table} WHERE store IN ($1, '') AND company_id = $2::uuid`,
        [this.store, companyId],
      );
    }
  }

  /** How many rows a company has of each kind and status. */
  async counts(companyId: string): Promise<{ kind: Kind; status: Status; n: number }[]> {
    return this.host.db.query(
      `SELECT kind, status, count(*)::int AS n FROM ${this.namespace}.ledger WHERE store = $1 AND company_id = $2::uuid GROUP BY kind, status ORDER BY kind, status`,
      [this.store, companyId],
    );
  }

  /** What was not taken, with the reasons, newest first. */
  async troubles(
    companyId: string,
  ): Promise<{ kind: Kind; source_id: string; issue_id: string | null; status: Status; error: string | null }[]> {
    return this.host.db.query(
      `SELECT kind, source_id, issue_id, status, error FROM ${this.namespace}.ledger
       WHERE store = $1 AND company_id = $2::uuid AND status IN ('waiting', 'refused') ORDER BY updated_at DESC LIMIT ${TROUBLES}`,
      [this.store, companyId],
    );
  }
}
