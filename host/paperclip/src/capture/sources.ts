// What Paperclip has and the ledger does not: comments, runs and documents, oldest first.
import type { Kind, Ledger } from "../ledger";
import type { Host } from "../paperclip/host";

interface Row {
  id: string;
  company_id: string;
  issue_id: string | null;
  project_id: string | null;
  agent_id: string | null;
  run_id: string | null;
  revision: string;
  /** When it was written. */
  changed_at: string;
  /** When its row changed last. */
  moved_at: string;
  /** What the ledger says of the revision before, if there was one. */
  known: string | null;
  /** When it was written, to the microsecond: the next page begins behind it. */
  place: string;
}

export interface CommentRow extends Row {
  issue_id: string;
  user_id: string | null;
  body: string;
}

export interface RunRow extends Row {
  agent_id: string;
  status: string;
  body: string | null;
}

export interface DocumentRow extends Row {
  issue_id: string;
  key: string;
}

/** What was deleted in Paperclip. */
export interface Gone {
  kind: "comment" | "document" | "run" | "issue";
  id: string;
  company_id: string;
  issue_id: string | null;
  document_key: string | null;
}

/** Bytes of text in one page. */
const PAGE_BYTES = 4_000_000;
const PAGE_ROWS = 1000;

/**
 * A run's output is found in a comment by its first characters, if they are near the comment's beginning. In whole texts
 * the search takes the product of their lengths.
 */
const START = 64;
const WITHIN = 4000;

/** The most that one query answers of what is gone. */
export const GONE = 1000;

/** Documents that Paperclip writes for itself. */
export const OWN_DOCUMENTS = ["continuation-summary", "pipeline-case-body"];

export interface Asked {
  /** Only what changed since then; null: everything. */
  since: Date | null;
  /** Companies that are left out for now. */
  without: string[];
  /** The last row of the page before; null: the first page. */
  after: Pick<Row, "place" | "id"> | null;
}

export class Sources {
  constructor(
    private readonly host: Host,
    private readonly ledger: Ledger,
  ) {}

  private get missing(): string {
    return `(l.source_id IS NULL OR l.revision <> s.revision OR (l.status = 'waiting' AND l.updated_at < now() - interval '1 minute'))`;
  }

  private page<T>(kind: Kind, source: string, asked: Asked): Promise<T[]> {
    const text = kind === "document" ? "0" : "coalesce(octet_length(s.body), 0)";
    return this.host.db.query<T>(
      `SELECT q.* FROM (
         SELECT s.*, s.changed_at::text AS place, l.status AS known, sum(${text}) OVER (ORDER BY s.changed_at, s.id) - ${text} AS bytes_before
         FROM (${source}) s
         LEFT JOIN LATERAL (${this.ledger.lookup(kind, "s.id")}) l ON true
         JOIN ${this.ledger.namespace}.companies k ON k.store = $1 AND k.company_id = s.company_id AND k.enrolled
         WHERE (k.backfill_after IS NULL OR s.changed_at >= k.backfill_after) AND s.moved_at >= $2::timestamptz AND NOT jsonb_exists($3::jsonb, s.company_id::text)
           AND ($4::text IS NULL OR (s.changed_at, s.id) > ($4::timestamptz, $5::text)) AND ${this.missing}
       ) q WHERE q.bytes_before < ${PAGE_BYTES} ORDER BY q.changed_at, q.id LIMIT ${PAGE_ROWS}`,
      [
        this.ledger.store,
        (asked.since ?? new Date(0)).toISOString(),
        JSON.stringify(asked.without),
        asked.after?.place ?? null,
        asked.after?.id ?? null,
      ],
    );
  }

  /** Comments of people and agents. Those of Paperclip itself, and deleted ones, are not memory. */
  comments(asked: Asked): Promise<CommentRow[]> {
    return this.page<CommentRow>(
      "comment",
      `SELECT c.id::text AS id, c.company_id, c.issue_id, i.project_id, coalesce(c.author_agent_id, c.derived_author_agent_id) AS agent_id, c.author_user_id AS user_id,
         coalesce(c.created_by_run_id, c.derived_created_by_run_id) AS run_id, c.body, md5(c.body) AS revision, c.created_at AS changed_at, c.updated_at AS moved_at
       FROM public.issue_comments c JOIN public.issues i ON i.id = c.issue_id
       WHERE c.deleted_at IS NULL AND c.author_type IS DISTINCT FROM 'system'`,
      asked,
    );
  }

  /**
   * Runs that have ended, with their output. What failed around a run, such as missing credentials, is no memory. Where
   * Paperclip has posted the output as a comment, the comment is remembered; if it is deleted, the run is.
   */
  runs(asked: Asked): Promise<RunRow[]> {
    return this.page<RunRow>(
      "run",
      `SELECT p.*, md5(p.status || coalesce(p.body, '')) AS revision
       FROM (SELECT o.id, o.company_id, o.agent_id, o.run_id, o.status, o.changed_at, o.moved_at, i.id AS issue_id, i.project_id,
         CASE WHEN EXISTS (SELECT 1 FROM public.issue_comments c WHERE c.issue_id = i.id AND c.deleted_at IS NULL AND c.author_type IS DISTINCT FROM 'system'
           AND coalesce(c.author_agent_id, c.derived_author_agent_id) = o.agent_id AND coalesce(c.created_by_run_id, c.derived_created_by_run_id)::text = o.id
           AND position(left(o.output, ${START}) in left(c.body, ${WITHIN})) > 0
           AND starts_with(substr(c.body, position(left(o.output, ${START}) in left(c.body, ${WITHIN}))), o.output))
         THEN NULL ELSE o.body END AS body
       FROM (SELECT r.*, btrim(r.body, ' ' || chr(9) || chr(10) || chr(13)) AS output FROM (SELECT r.id::text AS id, r.company_id, r.agent_id, r.id::text AS run_id, r.status, r.finished_at AS changed_at, greatest(r.finished_at, r.updated_at) AS moved_at,
           coalesce(nullif(r.result_json->>'result', ''), nullif(r.result_json->>'summary', ''), nullif(r.result_json->>'stdout', ''), nullif(r.stdout_excerpt, '')) AS body,
           coalesce(r.native_issue_id::text, r.context_snapshot->>'issueId') AS issue
         FROM public.heartbeat_runs r WHERE r.finished_at IS NOT NULL) r) o
       LEFT JOIN public.issues i ON i.id::text = o.issue AND i.company_id = o.company_id) p`,
      asked,
    );
  }

  /** Documents of companies that have a configuration row; their texts need a call of Paperclip each. */
  documents(companyId: string, asked: Asked): Promise<DocumentRow[]> {
    if (!/^[0-9a-f-]{36}$/i.test(companyId)) return Promise.resolve([]);
    const own = OWN_DOCUMENTS.map((key) => `'${key}'`).join(", ");
    return this.page<DocumentRow>(
      "document",
      `SELECT d.document_id::text AS id, d.company_id, d.issue_id, i.project_id, NULL::uuid AS agent_id, NULL::uuid AS run_id, d.key, d.updated_at::text AS revision,
         d.updated_at AS changed_at, d.updated_at AS moved_at
       FROM public.issue_documents d JOIN public.issues i ON i.id = d.issue_id
       WHERE d.company_id = '${companyId}'::uuid AND d.key NOT IN (${own})`,
      asked,
    );
  }

  /** Comments that were deleted lately: they leave a row, so these are found quickly. */
  deletedComments(since: Date): Promise<Gone[]> {
    return this.host.db.query(
      `SELECT l.kind, l.source_id AS id, l.company_id, l.issue_id, l.document_key FROM public.issue_comments c
       CROSS JOIN LATERAL (${this.ledger.lookup("comment", "c.id::text")}) l
       WHERE c.deleted_at >= $2::timestamptz AND l.status IN ('sent', 'waiting') LIMIT 1000`,
      [this.ledger.store, since.toISOString()],
    );
  }

  /**
   * What the ledger has and Paperclip no longer has, at most `GONE` rows. It leaves out the companies in `without`, and
   * those that are gone as a whole. A document that was made again has the source of the one before and takes its place.
   */
  gone(without: string[]): Promise<Gone[]> {
    const { namespace, store } = this.ledger;
    const where = (condition: string): string =>
      ` FROM ${namespace}.ledger l JOIN public.companies k ON k.id = l.company_id WHERE l.store = $1 AND l.status IN ('sent', 'waiting')` +
      ` AND NOT jsonb_exists($2::jsonb, l.company_id::text) AND ${condition}`;
    const kept = (kind: string): string =>
      `SELECT l.kind, l.source_id AS id, l.company_id, l.issue_id, l.document_key${where(`l.kind = '${kind}'`)}`;
    return this.host.db.query(
      `${kept("comment")} AND NOT EXISTS (SELECT 1 FROM public.issue_comments c WHERE c.id = l.source_id::uuid AND c.deleted_at IS NULL)
       UNION ALL ${kept("document")} AND NOT EXISTS (SELECT 1 FROM public.issue_documents d WHERE d.document_id = l.source_id::uuid)
         AND NOT EXISTS (SELECT 1 FROM public.issue_documents d WHERE d.issue_id = l.issue_id AND d.key = l.document_key)
       UNION ALL ${kept("run")} AND NOT EXISTS (SELECT 1 FROM public.heartbeat_runs r WHERE r.id = l.source_id::uuid)
       UNION ALL SELECT DISTINCT 'issue', l.issue_id::text, l.company_id, l.issue_id, NULL${where("l.issue_id IS NOT NULL")}
         AND NOT EXISTS (SELECT 1 FROM public.issues i WHERE i.id = l.issue_id)
       LIMIT ${GONE}`,
      [store, JSON.stringify(without)],
    );
  }

  companies(): Promise<{ id: string; name: string }[]> {
    return this.host.db.query(`SELECT id, name FROM public.companies ORDER BY created_at`);
  }
}
