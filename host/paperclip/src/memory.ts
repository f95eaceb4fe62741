// Memory as the rest of the plugin uses it: the client of the memhost that is there now, and companies made ready.
import { HOOK_KINDS } from "./capture/hooks";
import { connect, must, type Address, type Client, type Schemas } from "./memhost/client";

/** Memory cannot be used now; the message is for people. */
export class Unavailable extends Error {}

/** The provider that keeps records on this machine and costs nothing. */
export const FREE_PROVIDER = "local-markdown";
const BINDING = "default";

export type Source = {
  kind?: Schemas["SourceKind"];
  commentId?: string;
  documentKey?: string;
  issueId?: string;
  runId?: string;
  externalRef?: string;
};

export class Memory {
  private client: Client | null = null;
  private why = "memhost is starting";
  private ready = new Set<string>();
  /** Where people and gateways reach memhost. */
  address: Address | null = null;

  up(address: Address): void {
    this.address = address;
    this.client = connect(address);
    this.ready.clear();
  }

  down(why: string): void {
    this.client = null;
    this.address = null;
    this.why = why;
  }

  /** Why memory is not available; null if it is. */
  get trouble(): string | null {
    return this.client === null ? this.why : null;
  }

  get isUp(): boolean {
    return this.client !== null;
  }

  get use(): Client {
    if (this.client === null) throw new Unavailable(`memory is not available: ${this.why}`);
    return this.client;
  }

  /** Makes sure that a company has a default binding, which takes every kind of hook if it is made here. */
  async prepare(companyId: string): Promise<void> {
    if (this.ready.has(companyId)) return;
    await must(
      this.use.PUT("/control/v1/companies/{company}/default-binding", {
        params: { path: { company: companyId } },
        // What comes while a budget is used up waits for it, and is not lost.
        body: {
          key: BINDING,
          providerKey: FREE_PROVIDER,
          policy: { hooks: HOOK_KINDS.map((kind) => ({ kind, when: "active" as const })), onBudget: "queue" },
        },
      }),
    );
    this.ready.add(companyId);
  }

  /** Delivers events in their order; the answer means that they are durable. */
  async deliver(companyId: string, events: Schemas["HookEvent"][]) {
    const results = [];
    for (const some of grouped(events)) {
      const answer = await must(
        this.use.POST("/runtime/v1/companies/{company}/hooks/batch", {
          params: { path: { company: companyId } },
          body: { events: some },
        }),
      );
      results.push(...answer.results);
    }
    return results;
  }

  /** Forgets all records of these sources, of all bindings. False: something is left, ask again. */
  async forgetSources(companyId: string, sources: Source[]): Promise<boolean> {
    let isComplete = true;
    for (let start = 0; start < sources.length; start += 100) {
      const answer = await must(
        this.use.POST("/runtime/v1/companies/{company}/sources/forget", {
          params: { path: { company: companyId } },
          body: { scope: { companyId }, sources: sources.slice(start, start + 100) },
        }),
      );
      isComplete &&= answer.isComplete;
    }
    return isComplete;
  }

  async erase(companyId: string): Promise<void> {
    await must(
      this.use.POST("/control/v1/companies/{company}/erase", {
        params: { path: { company: companyId } },
        body: { confirm: companyId },
      }),
    );
    this.ready.delete(companyId);
  }

  async query(scope: Schemas["Scope"], query: string, topK: number) {
    await this.prepare(scope.companyId);
    return must(
      this.use.POST("/runtime/v1/companies/{company}/query", {
        params: { path: { company: scope.companyId } },
        body: { scope, query, topK },
      }),
    );
  }
}

/** What one request may hold: memhost takes 8 MiB and 1,000 events. */
const REQUEST_BYTES = 7_500_000;
const REQUEST_EVENTS = 1000;

/** Events in their order, in groups that are each small enough for one request. */
export function grouped<T>(events: T[], bytes = REQUEST_BYTES, most = REQUEST_EVENTS): T[][] {
  const groups: T[][] = [];
  let size = Infinity;
  for (const event of events) {
    const own = Buffer.byteLength(JSON.stringify(event), "utf8") + 1;
    if (size + own > bytes || (groups.at(-1)?.length ?? 0) >= most) {
      groups.push([]);
      size = 0;
    }
    groups.at(-1)?.push(event);
    size += own;
  }
  return groups;
}
