// What is not remembered yet: how much, by kind, and what it will cost. What is free is taken in by itself; what is metered
// waits for a person, while new things are remembered at once.
import { OWN_DOCUMENTS, type Sources } from "./capture/sources";
import type { Kind, Ledger } from "./ledger";
import { must, saying, type Schemas } from "./memhost/client";
import { FREE_PROVIDER, type Memory } from "./memory";
import type { Context } from "./context";

/** Whether a capture can cost something: the provider reaches other systems, or asks for embeddings. */
export function isMetered({ providerKey, grants }: Pick<Schemas["BindingView"], "providerKey" | "grants">): boolean {
  return providerKey !== FREE_PROVIDER || (grants.http ?? []).length > 0 || grants.embeddings === true;
}

export class Backfill {
  private readonly enrolled = new Set<string>();
  private store = "";

  constructor(
    private readonly memory: Memory,
    private readonly ledger: Ledger,
    private readonly sources: Sources,
  ) {}

  /**
   * Gives each new company its row, which says whether its past is taken in. Nothing of a company is taken in before,
   * because it could cost something. Answers the companies that could not be asked, with the reason.
   */
  async enrol(): Promise<Map<string, string>> {
    const waiting = new Map<string, string>();
    if (this.store !== this.ledger.store) this.enrolled.clear();
    this.store = this.ledger.store;
    const companies = (await this.sources.companies()).filter(({ id }) => !this.enrolled.has(id));
    if (companies.length === 0) return waiting;
    const rows = new Map((await this.ledger.companies()).map((row) => [row.company_id, row]));
    for (const { id } of companies) {
      const row = rows.get(id);
      if (row?.enrolled !== true) {
        let metered = false;
        try {
          await this.memory.prepare(id);
          const { items } = await must(
            this.memory.use.GET("/control/v1/companies/{company}/bindings", { params: { path: { company: id } } }),
          );
          metered = items.some((binding) => binding.isDefault && isMetered(binding));
        } catch (error) {
          if (!this.memory.isUp) throw error;
          waiting.set(id, saying(error));
          continue;
        }
        const after = metered && !row?.backfill_after ? { backfill_after: await this.ledger.now() } : {};
        await this.ledger.setCompany(id, { ...after, enrolled: true });
      }
      this.enrolled.add(id);
    }
    return waiting;
  }
}

export interface Backlog {
  kind: "comment" | "run" | "document";
  count: number;
  bytes: number;
}

/** Counts what Paperclip has of a company, capture takes, and the ledger does not have. */
export async function preview(plugin: Context, companyId: string): Promise<Backlog[]> {
  const { store } = plugin.ledger;
  const known = (kind: Kind, id: string): string => `LEFT JOIN LATERAL (${plugin.ledger.lookup(kind, id)}) l ON true`;
  return plugin.ctx.db.query<Backlog>(
    `SELECT 'comment' AS kind, count(*)::int AS count, coalesce(sum(octet_length(c.body)), 0)::int AS bytes FROM public.issue_comments c
       ${known("comment", "c.id::text")} WHERE c.company_id = $2::uuid AND c.deleted_at IS NULL AND c.author_type IS DISTINCT FROM 'system' AND l.source_id IS NULL
     UNION ALL SELECT 'run', count(*)::int, 0 FROM public.heartbeat_runs r ${known("run", "r.id::text")}
       WHERE r.company_id = $2::uuid AND r.finished_at IS NOT NULL AND l.source_id IS NULL
     UNION ALL SELECT 'document', count(*)::int, 0 FROM public.issue_documents d ${known("document", "d.document_id::text")}
       WHERE d.company_id = $2::uuid AND $3::boolean AND d.key NOT IN (SELECT jsonb_array_elements_text($4::jsonb)) AND l.source_id IS NULL`,
    // Paperclip gives documents of companies with settings only.
    [store, companyId, plugin.isConfigured(companyId), JSON.stringify(OWN_DOCUMENTS)],
  );
}

/** What taking in the past would cost, by what captures cost so far; null: nothing is known, or it is free. */
export async function estimate(plugin: Context, companyId: string, backlog: Backlog[]): Promise<number | null> {
  const sums = await must(
    plugin.memory.use.GET("/control/v1/companies/{company}/costs", { params: { path: { company: companyId } } }),
  ).catch(() => null);
  if (sums === null || sums.total.writes === 0 || sums.total.costCents === 0) return null;
  return (sums.total.costCents / sums.total.writes) * backlog.reduce((sum, { count }) => sum + count, 0);
}
