// Delivers items of one company in batches and marks them in the ledger.
import type { Ledger, Mark, Status } from "../ledger";
import { MemhostError, saying } from "../memhost/client";
import type { Memory, Source } from "../memory";
import type { Item } from "./hooks";

export interface Delivered {
  sent: Item[];
  /** Set where the company has to wait: what is left is tried again later. */
  held: string | null;
}

export class Delivery {
  constructor(
    private readonly memory: Memory,
    private readonly ledger: Ledger,
  ) {}

  async run(companyId: string, items: Item[]): Promise<Delivered> {
    const sent: Item[] = [];
    try {
      await this.memory.prepare(companyId);
      return { sent, held: await this.batch(companyId, items, sent) };
    } catch (error) {
      if (error instanceof MemhostError && !error.passes) {
        // The company as a whole is refused, such as one that was erased.
        await this.ledger.mark(
          items
            .filter((item) => !sent.includes(item))
            .map((item) => ({ ...item.mark, status: "refused", error: saying(error) })),
        );
        return { sent, held: null };
      }
      return { sent, held: saying(error) };
    }
  }

  private async batch(companyId: string, items: Item[], sent: Item[]): Promise<string | null> {
    const events = items.flatMap((item) => item.events);
    const results = events.length === 0 ? [] : await this.memory.deliver(companyId, events);
    const marks: Mark[] = [];
    const emptied: Item[] = [];
    let held: string | null = null;
    let at = 0;
    for (const item of items) {
      const own = results.slice(at, at + item.events.length);
      at += item.events.length;
      const refused = own.find((result) => result.outcome === "refused");
      const notTaken = own.find((result) => result.outcome === "not_taken");
      const mark = (status: Status, error: string | null): number => marks.push({ ...item.mark, status, error });
      if (own.length < item.events.length) held ??= "memhost did not answer every event";
      else if (item.events.length === 0) {
        if (item.isKnown) emptied.push(item);
        mark("empty", null);
      } else if (refused !== undefined) {
        const { code, detail, title } = refused.problem ?? {};
        const why = detail ?? title ?? "memhost refused it";
        // What can pass is tried again in a minute; the rest waits for a person.
        mark(new MemhostError(passing(code) ? 503 : 400, code ?? "unknown", why).passes ? "waiting" : "refused", why);
      } else if (notTaken !== undefined) mark("waiting", notTaken.notTaken?.reason ?? "no binding takes it");
      else {
        mark("sent", null);
        sent.push(item);
      }
    }
    if (emptied.length > 0 && !(await this.memory.forgetSources(companyId, emptied.map(sourceOf))))
      held ??= "memhost could not forget everything yet";
    await this.ledger.mark(marks);
    return held;
  }
}

const passing = (code: string | undefined): boolean =>
  code !== undefined &&
  [
    "busy",
    "unavailable",
    "circuit_open",
    "provider_loading",
    "host",
    "internal",
    "disk_full",
    "store_unavailable",
    "importing",
    "rate_limited",
    "budget_exceeded",
    "no_binding",
    "binding_disabled",
  ].includes(code);

/** What memhost knows the item as. */
export function sourceOf(item: {
  mark: Pick<Item["mark"], "kind" | "source_id" | "issue_id" | "document_key">;
}): Source {
  const { kind, source_id: id, issue_id: issueId, document_key: documentKey } = item.mark;
  if (kind === "comment") return { kind: "issue_comment", commentId: id };
  if (kind === "run") return { kind: "run", runId: id };
  return { kind: "issue_document", documentKey: documentKey ?? "", ...(issueId === null ? {} : { issueId }) };
}
