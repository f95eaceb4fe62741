// What is gone in Paperclip is forgotten; Paperclip sends no event for it.
import type { Settings } from "../config";
import type { Kind, Ledger } from "../ledger";
import { MemhostError, saying } from "../memhost/client";
import type { Memory, Source } from "../memory";
import type { Host } from "../paperclip/host";
import { sourceOf } from "./deliver";
import { GONE, type Gone, type Sources } from "./sources";

export class Forgetting {
  constructor(
    private readonly host: Host,
    private readonly memory: Memory,
    private readonly ledger: Ledger,
    private readonly sources: Sources,
  ) {}

  async run(settings: (companyId: string) => Settings): Promise<void> {
    const failed: string[] = [];
    for (let found = GONE; found === GONE; ) {
      const gone = await this.sources.gone(failed);
      found = gone.length;
      failed.push(...(await this.forget(gone)));
    }
    await this.companiesThatAreGone(settings);
  }

  /** Only what was deleted lately and is quickly found. */
  async quick(since: Date): Promise<void> {
    await this.forget(await this.sources.deletedComments(since));
  }

  /** Answers the companies that have something left. */
  private async forget(everything: Gone[]): Promise<string[]> {
    const failed: string[] = [];
    const byCompany = new Map<string, Gone[]>();
    for (const gone of everything) byCompany.set(gone.company_id, [...(byCompany.get(gone.company_id) ?? []), gone]);
    for (const [companyId, all] of byCompany) {
      try {
        if (!(await this.memory.forgetSources(companyId, all.map(asSource)))) {
          failed.push(companyId);
          continue;
        }
      } catch (error) {
        if (error instanceof MemhostError && error.code !== "company_erased") {
          this.host.logger.warn("what was deleted could not be forgotten yet", { companyId, error: saying(error) });
          failed.push(companyId);
          continue;
        }
        if (!(error instanceof MemhostError)) throw error;
      }
      for (const kind of ["comment", "document", "run"] as Kind[]) {
        await this.ledger.setStatus(
          kind,
          companyId,
          all.filter((gone) => gone.kind === kind).map((gone) => gone.id),
          "forgotten",
        );
      }
      for (const gone of all) if (gone.kind === "issue") await this.ledger.forgetIssue(companyId, gone.id);
      this.host.logger.info("forgot what was deleted", { companyId, count: all.length });
    }
    return failed;
  }

  /** A deleted company is erased after its grace period. One that comes back in time keeps its memory. */
  private async companiesThatAreGone(settings: (companyId: string) => Settings): Promise<void> {
    const there = new Set((await this.sources.companies()).map(({ id }) => id));
    const rows = await this.ledger.companies();
    for (const row of rows) {
      if (there.has(row.company_id)) {
        if (row.gone_since !== null) await this.ledger.setCompany(row.company_id, { gone_since: null });
      } else if (row.gone_since === null)
        await this.ledger.setCompany(row.company_id, { gone_since: new Date().toISOString() });
      else if (Date.now() - new Date(row.gone_since).getTime() >= settings(row.company_id).eraseGraceSeconds * 1000) {
        await this.memory.erase(row.company_id);
        await this.ledger.drop(row.company_id);
        this.host.logger.info("erased the memory of a deleted company", { companyId: row.company_id });
      }
    }
  }
}

function asSource(gone: Gone): Source {
  if (gone.kind === "issue") return { issueId: gone.id };
  return sourceOf({
    mark: { kind: gone.kind, source_id: gone.id, issue_id: gone.issue_id, document_key: gone.document_key },
  });
}
