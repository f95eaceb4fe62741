// Paperclip's activity log: writes and changes of memory, with agent and run in the metadata. A backfill is one entry.
import type { Item } from "./capture/hooks";
import { saying } from "./memhost/client";
import type { Host } from "./paperclip/host";

/** More than this in one round is a backfill. */
const SINGLE = 5;

export class Activity {
  constructor(
    private readonly host: Host,
    private readonly configured: (companyId: string) => boolean,
  ) {}

  async captured(companyId: string, items: Item[]): Promise<void> {
    if (items.length > SINGLE) {
      const counts = new Map<string, number>();
      for (const { mark } of items) counts.set(mark.kind, (counts.get(mark.kind) ?? 0) + 1);
      const kinds = [...counts].map(([kind, count]) => `${count} ${kind}${count === 1 ? "" : "s"}`);
      await this.log(companyId, `Memory took in ${kinds.join(", ")}`, "company", companyId, { count: items.length });
      return;
    }
    for (const { mark, agentId, events } of items) {
      await this.log(
        companyId,
        `Memory took in a ${mark.kind}`,
        mark.issue_id === null ? "company" : "issue",
        mark.issue_id ?? companyId,
        {
          kind: mark.kind,
          sourceId: mark.source_id,
          agentId,
          runId: events[0]?.heartbeatRunId ?? null,
        },
      );
    }
  }

  async wrote(companyId: string, what: string, count: number, metadata: Record<string, unknown>): Promise<void> {
    await this.log(
      companyId,
      `Memory: ${what} ${count === 1 ? "a memory" : `${count} memories`}`,
      "company",
      companyId,
      metadata,
    );
  }

  private async log(
    companyId: string,
    message: string,
    entityType: string,
    entityId: string,
    metadata: Record<string, unknown>,
  ): Promise<void> {
    // Paperclip takes activity of companies with a configuration row only.
    if (!this.configured(companyId)) return;
    try {
      await this.host.activity.log({ companyId, message, entityType, entityId, metadata });
    } catch (error) {
      this.host.logger.warn("an entry is missing in the activity log", { companyId, message, error: saying(error) });
    }
  }
}
