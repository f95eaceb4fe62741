// What a run is about, from Paperclip's tables. A caller says which run; the rest is read, never believed.
import { named } from "../capture/text";
import type { Host } from "./host";

export interface Run {
  runId: string;
  companyId: string;
  agentId: string;
  issueId: string | null;
  projectId: string | null;
  title: string | null;
  description: string | null;
}

const ANY_ID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
export const isId = (value: unknown): value is string => typeof value === "string" && UUID.test(value);

export async function runOf(host: Host, companyId: string, runId: string | null | undefined): Promise<Run | null> {
  if (!isId(runId)) return null;
  const [row] = await host.db.query<{
    agent_id: string;
    issue_id: string | null;
    project_id: string | null;
    title: string | null;
    description: string | null;
  }>(
    `SELECT r.agent_id, i.id AS issue_id, i.project_id, i.title, i.description
     FROM public.heartbeat_runs r
     LEFT JOIN public.issues i ON i.id::text = coalesce(r.native_issue_id::text, r.context_snapshot->>'issueId') AND i.company_id = r.company_id
     WHERE r.id = $1::uuid AND r.company_id = $2::uuid`,
    [runId, companyId],
  );
  if (row === undefined) return null;
  return {
    runId,
    companyId,
    agentId: row.agent_id,
    issueId: row.issue_id,
    projectId: row.project_id,
    title: row.title,
    description: row.description,
  };
}

export async function issueOf(
  host: Host,
  companyId: string,
  issueId: string,
): Promise<{ title: string; description: string | null; projectId: string | null } | null> {
  if (!isId(issueId)) return null;
  const [row] = await host.db.query<{ title: string; description: string | null; project_id: string | null }>(
    `SELECT title, description, project_id FROM public.issues WHERE id = $1::uuid AND company_id = $2::uuid`,
    [issueId, companyId],
  );
  return row === undefined ? null : { title: row.title, description: row.description, projectId: row.project_id };
}

/** The agents that work in a company. */
export async function agentsOf(host: Host, companyId: string): Promise<{ id: string; name: string }[]> {
  return host.db.query(
    `SELECT id::text AS id, name FROM public.agents WHERE company_id = $1::uuid AND status <> 'terminated' ORDER BY name`,
    [companyId],
  );
}

/** Names for what memory cites: identifiers and titles of issues, names of agents. */
export interface Named {
  /** Such as `ACM-2 The harbour`, or the name of an agent. */
  name: string;
  /** What an address of Paperclip has: an issue's identifier, else the id. */
  key: string;
}

export async function namesOf(host: Host, companyId: string, ids: string[]): Promise<Map<string, Named>> {
  const wanted = [...new Set(ids.filter(isId))];
  if (wanted.length === 0) return new Map();
  const rows = await host.db.query<Named & { id: string }>(
    `SELECT id::text AS id, coalesce(identifier, id::text) AS key, concat_ws(' ', identifier, title) AS name FROM public.issues WHERE company_id = $1::uuid AND id::text IN (SELECT jsonb_array_elements_text($2::jsonb))
     UNION ALL SELECT id::text, id::text, name FROM public.agents WHERE company_id = $1::uuid AND id::text IN (SELECT jsonb_array_elements_text($2::jsonb))`,
    [companyId, JSON.stringify(wanted)],
  );
  return new Map(rows.map(({ id, name, key }) => [id, { name, key }]));
}

/** A text with the names of the company's issues and agents in the place of their ids. */
export async function withNames(host: Host, companyId: string, text: string): Promise<string> {
  const names = await namesOf(
    host,
    companyId,
    (text.match(ANY_ID) ?? []).map((id) => id.toLowerCase()),
  );
  return text.replace(ANY_ID, (id) => {
    const name = names.get(id.toLowerCase())?.name;
    return name === undefined ? id : named(name);
  });
}
