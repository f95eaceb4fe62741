// Costs of memory, entered in Paperclip once each. Its API knows no idempotency: a row of ours is written before an entry
// is made, and after a crash Paperclip is asked before an entry is made again.
import { MemhostError, must, saying, type Schemas } from "./memhost/client";
import { enterCharges } from "./charges";
import { BoardError, boardOf, type Board } from "./paperclip/board";
import { isId } from "./paperclip/runs";
import type { Context, Worker } from "./context";
import { codeOf, orNull, type Entry, type Form } from "./entries";

type CostEvent = Schemas["CostEvent"];
const EVERY_MS = 10_000;
/** An entry that is on its way is not looked for before. */
const ON_ITS_WAY_MS = 20_000;

interface Open {
  event_id: string;
  form: Form;
  body: Record<string, unknown>;
  age_ms: number;
}

/** Whole cents of an event and what remains, in millionths of a cent, for the next one of the same account. */
export function wholeCents(costCents: number, rest: number): { cents: number; rest: number } {
  const exact = Math.round(costCents * 1_000_000) + rest;
  const cents = Math.floor(exact / 1_000_000);
  return { cents, rest: exact - cents * 1_000_000 };
}

export class Spending {
  private readonly troubles = new Map<string, string>();
  private last = 0;

  constructor(private readonly plugin: Context) {}

  trouble(companyId: string): string | null {
    return this.troubles.get(companyId) ?? null;
  }

  async run(): Promise<void> {
    if (Date.now() - this.last < EVERY_MS) return;
    const { plugin } = this;
    for (const { id: companyId } of await plugin.companies()) {
      if (!plugin.isConfigured(companyId)) continue;
      try {
        const board = await boardOf(plugin.ctx, companyId, plugin.settings(companyId));
        if (board === null) continue;
        const isFinished = await this.finish(companyId, board);
        await this.read(companyId, board);
        await enterCharges(this.plugin, companyId, (event) => this.enterOnce(companyId, board, event));
        if (isFinished) this.troubles.delete(companyId);
      } catch (error) {
        this.troubles.set(companyId, saying(error));
        plugin.ctx.logger.warn("costs of memory are not entered yet", { companyId, error: saying(error) });
      }
    }
    // A Paperclip that does not answer may take longer than the time between two runs.
    this.last = Date.now();
  }

  /** Enters what follows the company's cursor. The cursor is kept after each page: an event that is read again has its row. */
  private async read(companyId: string, board: Board): Promise<void> {
    const { ledger, memory } = this.plugin;
    let cursor = (await ledger.company(companyId))?.cost_cursor ?? null;
    for (;;) {
      let page: Schemas["CostEventPage"];
      try {
        page = await must(
          memory.use.GET("/control/v1/companies/{company}/cost-events", {
            params: {
              path: { company: companyId },
              query: { order: "oldest", limit: 200, ...(cursor === null ? {} : { cursor }) },
            },
          }),
        );
      } catch (error) {
        // After a restored backup the cursor is another host's; events keep their ids.
        if (!(error instanceof MemhostError) || error.status !== 400 || cursor === null) throw error;
        cursor = null;
        continue;
      }
      for (const event of page.items) await this.enter(companyId, board, event);
      cursor = page.nextCursor ?? cursor;
      await ledger.setCompany(companyId, { cost_cursor: cursor });
      if (!page.more) return;
    }
  }

  private async enter(companyId: string, board: Board, event: CostEvent): Promise<void> {
    const { ctx, ledger } = this.plugin;
    const [agent] = isId(event.agentId)
      ? await ctx.db.query(`SELECT id FROM public.agents WHERE id = $1::uuid AND company_id = $2::uuid`, [
          event.agentId,
          companyId,
        ])
      : [];
    const form: Form = agent === undefined ? "finance" : "cost";
    const account = [form, agent === undefined ? "" : event.agentId, event.provider, event.model].join(" ");
    const [before] = await ctx.db.query<{ rest: number }>(
      `SELECT rest FROM ${ledger.namespace}.costs WHERE store = $1 AND company_id = $2::uuid AND account = $3 ORDER BY entered DESC LIMIT 1`,
      [ledger.store, companyId, account],
    );
    const { cents, rest } = wholeCents(event.costCents, before?.rest ?? 0);
    await this.enterOnce(companyId, board, {
      id: event.id,
      form,
      account,
      cents,
      rest,
      body: form === "cost" ? costBody(event, cents) : financeBody(event, cents),
    });
  }

  /** Cents, remainder and entry are one row: whatever ends the worker, no cent is lost or counted twice. */
  private async enterOnce(
    companyId: string,
    board: Board,
    { id, form, account, cents, rest, body }: Entry,
  ): Promise<void> {
    const { ctx, ledger } = this.plugin;
    const { rowCount } = await ctx.db.execute(
      `INSERT INTO ${ledger.namespace}.costs (store, event_id, company_id, form, account, status, cents, rest, body)
       VALUES ($1, $2, $3::uuid, $4, $5, 'posting', $6::int, $7::int, $8::jsonb) ON CONFLICT (store, event_id) DO NOTHING`,
      [ledger.store, id, companyId, form, account, cents, rest, JSON.stringify(body)],
    );
    if (rowCount > 0) await this.post(companyId, board, { event_id: id, form, body, age_ms: 0 });
  }

  private async post(companyId: string, board: Board, open: Open): Promise<void> {
    const path = `/companies/${companyId}/${open.form}-events`;
    try {
      await board.ask("POST", path, open.body);
    } catch (error) {
      // Paperclip does not take an entry about an issue, a project or a run that was deleted meanwhile.
      if (!(error instanceof BoardError) || [0, 401, 403, 429, 503].includes(error.status)) throw error;
      if (!(await this.isThere(companyId, board, open)))
        await board.ask("POST", path, { ...open.body, issueId: null, projectId: null, heartbeatRunId: null });
    }
    await this.close(open.event_id);
  }

  private async close(id: string): Promise<void> {
    const { ctx, ledger } = this.plugin;
    await ctx.db.execute(
      `UPDATE ${ledger.namespace}.costs SET status = 'posted', updated_at = now() WHERE store = $1 AND event_id = $2`,
      [ledger.store, id],
    );
  }

  /**
   * What was on its way when something ended: looks whether it is there before it is entered again. Answers whether
   * nothing is on its way any more.
   */
  private async finish(companyId: string, board: Board): Promise<boolean> {
    const { ctx, ledger } = this.plugin;
    const open = await ctx.db.query<Open>(
      `SELECT event_id, form, body, (extract(epoch FROM now() - updated_at) * 1000)::float8 AS age_ms FROM ${ledger.namespace}.costs
       WHERE store = $1 AND company_id = $2::uuid AND status = 'posting' ORDER BY entered LIMIT 200`,
      [ledger.store, companyId],
    );
    const old = open.filter(({ age_ms }) => age_ms >= ON_ITS_WAY_MS);
    for (const one of old) {
      if (await this.isThere(companyId, board, one)) await this.close(one.event_id);
      else await this.post(companyId, board, one);
    }
    return old.length === open.length;
  }

  private async isThere(companyId: string, board: Board, { event_id: id, form, body }: Open): Promise<boolean> {
    const code = codeOf(id);
    if (form === "cost") {
      return (
        (
          await this.plugin.ctx.db.query(
            `SELECT id FROM public.cost_events WHERE company_id = $1::uuid AND billing_code = $2 LIMIT 1`,
            [companyId, code],
          )
        ).length > 0
      );
    }
    // Only the newest are listed, so it is looked for at its moment. Paperclip keeps milliseconds.
    const moment = new Date(String(body.occurredAt)).getTime();
    const [from, to] = [moment - 1, moment + 1].map((at) => encodeURIComponent(new Date(at).toISOString()));
    const listed = await board.ask<{ billingCode?: string | null }[]>(
      "GET",
      `/companies/${companyId}/costs/finance-events?limit=500&from=${from}&to=${to}`,
    );
    return listed.some(({ billingCode }) => billingCode === code);
  }
}

function costBody(event: CostEvent, cents: number): Record<string, unknown> {
  return {
    agentId: event.agentId,
    issueId: orNull(event.issueId),
    projectId: orNull(event.projectId),
    heartbeatRunId: orNull(event.heartbeatRunId),
    billingCode: codeOf(event.id),
    provider: event.provider,
    biller: event.biller ?? event.provider,
    billingType: event.billingType,
    costStatus: event.costStatus,
    model: event.model,
    inputTokens: event.inputTokens + event.embeddingTokens,
    cachedInputTokens: event.cachedInputTokens,
    outputTokens: event.outputTokens,
    costCents: cents,
    occurredAt: event.occurredAt,
  };
}

function financeBody(event: CostEvent, cents: number): Record<string, unknown> {
  return {
    issueId: orNull(event.issueId),
    projectId: orNull(event.projectId),
    heartbeatRunId: orNull(event.heartbeatRunId),
    billingCode: codeOf(event.id),
    eventKind: "inference_charge",
    biller: event.biller ?? event.provider,
    provider: event.provider,
    model: event.model,
    amountCents: cents,
    description: "Memory",
    occurredAt: event.occurredAt,
    metadataJson: { memhostCostEventId: event.id, memhostOperationId: event.operationId, askedBy: event.agentId },
  };
}

/** What memory cost this month, null where memhost does not say, and what of it is in Paperclip. */
export async function costsOf(
  plugin: Worker,
  companyId: string,
): Promise<{ monthCents: number | null; entered: number; waiting: number; error: string | null }> {
  const { ctx, ledger, memory, spending } = plugin;
  const month = new Date();
  const since = new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth(), 1)).toISOString();
  const sums = await must(
    memory.use.GET("/control/v1/companies/{company}/costs", {
      params: { path: { company: companyId }, query: { since } },
    }),
  ).catch(() => null);
  const rows = await ctx.db.query<{ status: string; n: number }>(
    `SELECT status, count(*)::int AS n FROM ${ledger.namespace}.costs WHERE store = $1 AND company_id = $2::uuid GROUP BY status`,
    [ledger.store, companyId],
  );
  const of = (status: string): number => rows.find((row) => row.status === status)?.n ?? 0;
  return {
    monthCents: sums?.total.costCents ?? null,
    entered: of("posted"),
    waiting: of("posting"),
    error: spending.trouble(companyId),
  };
}
