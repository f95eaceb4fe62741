// A stand-in for Paperclip: real Postgres in this process, with the plugin's migrations, and the refusals of a real server.
import { PGlite } from "@electric-sql/pglite";
import { readFileSync } from "node:fs";
import path from "node:path";
import { randomUUID } from "node:crypto";
import manifest from "../../src/manifest";
import type { Host } from "../../src/paperclip/host";

const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
export const NAMESPACE = "plugin_memhost_d7b1543049";

const CORE = readFileSync(path.join(here, "core.sql"), "utf8");
const MIGRATIONS = ["001_ledger", "002_lead", "003_source", "004_enrolled"]
  .map((name) => readFileSync(path.join(here, `../../migrations/${name}.sql`), "utf8"))
  .join(";");

/** What a real server refuses; see its plugin-database.js. */
function check(sql: string, params: unknown[], writes: boolean): void {
  const plain = sql
    .replace(/'([^']|'')*'/g, "''")
    .replace(/\s+/g, " ")
    .trim()
    .toLowerCase();
  if (plain.includes(";")) throw new Error("exactly one statement");
  if (!(writes ? /^(insert into|update|delete from)\b/ : /^(select|with) /).test(plain))
    throw new Error(`not allowed: ${plain.slice(0, 60)}`);
  if (!writes && /\b(insert|update|delete|alter|create|drop|truncate)\b/.test(plain))
    throw new Error("a query cannot contain mutation keywords");
  if (/\b(grant|revoke|copy|call)\b/.test(plain)) throw new Error("disallowed clause");
  for (const [, schema, table] of sql.matchAll(
    /\b(?:from|join|into|update)\s+"?([A-Za-z_]\w*)"?\."?([A-Za-z_]\w*)"?/gi,
  )) {
    if (schema === NAMESPACE) continue;
    if (
      writes ||
      schema !== "public" ||
      !(manifest.database?.coreReadTables as readonly string[]).includes(table ?? "")
    )
      throw new Error(`${schema}.${table} may not be used`);
  }
  const used = new Set([...sql.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)));
  params.forEach((_, index) => {
    if (!used.has(index + 1)) throw new Error(`parameter $${index + 1} is not referenced`);
  });
}

/** One Postgres for all tests of a file: starting it takes a second. */
let shared: Promise<PGlite> | null = null;
async function postgres(): Promise<PGlite> {
  shared ??= (async () => {
    const pg = new PGlite();
    await pg.exec(`${CORE}; CREATE SCHEMA ${NAMESPACE}; ${MIGRATIONS}`);
    return pg;
  })();
  const pg = await shared;
  const { rows } = await pg.query<{ name: string }>(
    `SELECT schemaname || '.' || tablename AS name FROM pg_tables WHERE schemaname IN ('public', '${NAMESPACE}')`,
  );
  await pg.exec(`TRUNCATE ${rows.map(({ name }) => name).join(", ")}`);
  return pg;
}

export class FakeHost {
  readonly logs: string[] = [];
  readonly activity: { companyId: string; message: string; metadata?: Record<string, unknown> }[] = [];
  readonly documents = new Map<string, { body: string; latestRevisionNumber: number; title: string | null }>();
  /** The next write of the ledger fails, as if the worker had ended there. */
  failNextWrite = false;
  configured = new Set<string>();
  readonly members: {
    companyId: string;
    principalType: string;
    principalId: string;
    membershipRole: string;
    status: string;
  }[] = [];

  private constructor(readonly pg: PGlite) {}

  static async make(): Promise<FakeHost> {
    return new FakeHost(await postgres());
  }

  get host(): Host {
    const log = (message: string): void => void this.logs.push(message);
    const values = (rows: Record<string, unknown>[]): Record<string, unknown>[] =>
      rows.map((row) =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [name, value instanceof Date ? value.toISOString() : value]),
        ),
      );
    return {
      db: {
        namespace: NAMESPACE,
        query: async (sql: string, params: unknown[] = []) => {
          check(sql, params, false);
          return values((await this.pg.query<Record<string, unknown>>(sql, params)).rows);
        },
        execute: async (sql: string, params: unknown[] = []) => {
          check(sql, params, true);
          if (this.failNextWrite && sql.includes(".ledger")) {
            this.failNextWrite = false;
            throw new Error("the worker ended here");
          }
          return { rowCount: (await this.pg.query(sql, params)).affectedRows ?? 0 };
        },
      },
      logger: { info: log, warn: log, error: log, debug: log },
      issues: {
        documents: {
          get: async (_issue: string, key: string, companyId: string) => {
            if (!this.configured.has(companyId)) throw new Error("this company has no configuration");
            return this.documents.get(key) ?? null;
          },
        },
      },
      access: {
        members: {
          list: async ({ companyId }: { companyId: string }) =>
            this.members.filter((one) => one.companyId === companyId),
        },
      },
      activity: { log: async (entry: { companyId: string; message: string }) => void this.activity.push(entry) },
      secrets: { resolve: async () => "the secret" },
      skills: {
        managed: { reconcile: async () => ({ skill: { key: "company/memory" }, skillId: "s", status: "created" }) },
      },
      config: {
        get: async () => {
          throw new Error("there is no company here");
        },
      },
    } as unknown as Host;
  }

  private async insert(table: string, row: Record<string, unknown>): Promise<string> {
    const id = (row.id as string | undefined) ?? randomUUID();
    const all = { id, ...row };
    const names = Object.keys(all);
    await this.pg.query(
      `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map((_, index) => `$${index + 1}`).join(", ")})`,
      Object.values(all),
    );
    return id;
  }

  /** A person's role in a company, in the place of an earlier one. */
  member(companyId: string, userId: string, membershipRole: string, status = "active"): void {
    const others = this.members.filter((one) => one.companyId !== companyId || one.principalId !== userId);
    this.members.splice(0, Infinity, ...others, {
      companyId,
      principalType: "user",
      principalId: userId,
      membershipRole,
      status,
    });
  }

  company = (name: string) => this.insert("companies", { name });
  agent = (company_id: string, name: string) => this.insert("agents", { company_id, name });
  issue = (company_id: string, title: string, more: Record<string, unknown> = {}) =>
    this.insert("issues", { company_id, title, ...more });
  comment = (company_id: string, issue_id: string, body: string, more: Record<string, unknown> = {}) =>
    this.insert("issue_comments", {
      company_id,
      issue_id,
      body,
      author_type: "user",
      author_user_id: "local-board",
      ...more,
    });
  run = (company_id: string, agent_id: string, more: Record<string, unknown> = {}) =>
    this.insert("heartbeat_runs", {
      company_id,
      agent_id,
      status: "succeeded",
      finished_at: new Date().toISOString(),
      ...more,
    });
}
