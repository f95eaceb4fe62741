// A company that Paperclip paused because its budget is used up spends nothing on memory either. What is free goes on.
import type { Closed, Ledger } from "./ledger";
import { must, saying } from "./memhost/client";
import type { Memory } from "./memory";
import type { Host } from "./paperclip/host";

const EVERY_MS = 10_000;

export class Budgets {
  private last = 0;

  constructor(
    private readonly host: Host,
    private readonly memory: Memory,
    private readonly ledger: Ledger,
  ) {}

  async run(): Promise<void> {
    if (Date.now() - this.last < EVERY_MS) return;
    this.last = Date.now();
    const paused = new Set(
      (
        await this.host.db.query<{ id: string }>(
          `SELECT id::text AS id FROM public.companies WHERE status = 'paused' AND pause_reason = 'budget'`,
        )
      ).map(({ id }) => id),
    );
    for (const { company_id: companyId, closed } of await this.ledger.companies()) {
      try {
        if (paused.has(companyId) && closed === null) await this.close(companyId);
        else if (!paused.has(companyId) && closed !== null) await this.open(companyId, closed);
      } catch (error) {
        this.host.logger.warn("memory's budget does not follow Paperclip's yet", { companyId, error: saying(error) });
      }
    }
  }

  private async close(companyId: string): Promise<void> {
    const { items } = await must(
      this.memory.use.GET("/control/v1/companies/{company}/budgets", { params: { path: { company: companyId } } }),
    );
    const day = items.find(({ bindingKey, period }) => period === "day" && !bindingKey);
    // First what it was: a crash in between closes it again and does not lose the limit.
    await this.ledger.setCompany(companyId, {
      closed: { limitCents: day?.limitCents ?? null, warnShare: day?.warnShare ?? null },
    });
    await this.set(companyId, 0, null);
    this.host.logger.info("metered memory stopped with the company's budget", { companyId });
  }

  private async open(companyId: string, closed: Closed): Promise<void> {
    if (closed.limitCents !== null) await this.set(companyId, closed.limitCents, closed.warnShare);
    else
      await must(
        this.memory.use.DELETE("/control/v1/companies/{company}/budgets/{period}", {
          params: { path: { company: companyId, period: "day" } },
        }),
      ).catch(gone);
    await this.ledger.setCompany(companyId, { closed: null });
    this.host.logger.info("metered memory goes on", { companyId });
  }

  private async set(companyId: string, limitCents: number, warnShare: number | null): Promise<void> {
    await must(
      this.memory.use.PUT("/control/v1/companies/{company}/budgets/{period}", {
        params: { path: { company: companyId, period: "day" } },
        body: { limitCents, ...(warnShare === null ? {} : { warnShare }) },
      }),
    );
  }
}

/** Somebody removed it already; an answer without a body is an answer. */
function gone(error: unknown): void {
  const status = error instanceof Error && "status" in error ? error.status : null;
  if (status !== 404 && status !== 204 && status !== 200) throw error;
}
