// Brings memory up to date with Paperclip. Events only wake it; what it does follows from the tables and the ledger.
import { AsyncLocalStorage } from "node:async_hooks";
import { takesPart, type Settings } from "../config";
import type { Ledger } from "../ledger";
import { saying } from "../memhost/client";
import type { Memory } from "../memory";
import type { Host } from "../paperclip/host";
import { Backfill } from "../backfill";
import { Delivery } from "./deliver";
import { Forgetting } from "./forgetting";
import { ofComment, ofDocument, ofRun, type Item } from "./hooks";
import { Sources, type Asked } from "./sources";

/** How far a quick look goes back: longer than any transaction of Paperclip. */
const QUICK_MS = 180_000;
const HOLD_MS = 15_000;
const FORGET_EVERY_MS = 10_000;

// Host calls in here carry no invocation: the pump serves all companies, whoever woke it.
export const outside = AsyncLocalStorage.snapshot();

export interface PumpOptions {
  host: Host;
  memory: Memory;
  ledger: Ledger;
  settings(companyId: string): Settings;
  /** Companies that have a configuration row: Paperclip gives documents of these only. */
  configured(): string[];
  /** Whether this server takes in what is new; another one on the same database may do it. */
  leads?(): boolean;
  /** Work beside rounds, such as costs and budgets: begun after each page, once at a time, and no round waits for it. */
  meanwhile?(): Promise<void>;
  /** Work at the end of each round. */
  afterwards?(): Promise<void>;
  onSent?(companyId: string, items: Item[]): Promise<void>;
}

export interface PumpState {
  lastRound: string | null;
  error: string | null;
  held: Record<string, string>;
  sent: number;
}

export class Pump {
  readonly state: PumpState = { lastRound: null, error: null, held: {}, sent: 0 };
  readonly sources: Sources;
  private readonly backfill: Backfill;
  private readonly delivery: Delivery;
  private readonly forgetting: Forgetting;
  private readonly until = new Map<string, number>();
  private running: Promise<void> | null = null;
  private beside: Promise<void> | null = null;
  private again = false;
  private wantsEverything = true;
  private forgotAt = 0;

  constructor(private readonly options: PumpOptions) {
    this.sources = new Sources(options.host, options.ledger);
    this.backfill = new Backfill(options.memory, options.ledger, this.sources);
    this.delivery = new Delivery(options.memory, options.ledger);
    this.forgetting = new Forgetting(options.host, options.memory, options.ledger, this.sources);
  }

  /** Starts a round, or another one after the one that runs. The promise ends with it and never fails. */
  wake(everything = false): Promise<void> {
    this.wantsEverything ||= everything;
    if (this.running !== null) {
      this.again = true;
      return this.running;
    }
    this.running = outside(() => this.rounds()).finally(() => {
      this.running = null;
    });
    return this.running;
  }

  private async rounds(): Promise<void> {
    do {
      this.again = false;
      if (!this.options.memory.isUp || this.options.ledger.store === "" || !(this.options.leads?.() ?? true)) return;
      const everything = this.wantsEverything;
      this.wantsEverything = false;
      try {
        await this.round(everything);
        this.state.error = null;
        this.state.lastRound = new Date().toISOString();
      } catch (error) {
        this.wantsEverything ||= everything;
        this.state.error = saying(error);
        this.options.host.logger.warn("a round of memory did not end", { error: saying(error) });
      }
    } while (this.again);
  }

  private async round(everything: boolean): Promise<void> {
    for (const [companyId, why] of await this.backfill.enrol()) this.hold(companyId, why);
    const since = everything ? null : new Date(Date.now() - QUICK_MS);
    await this.pages(
      (asked) => this.sources.comments(asked),
      since,
      async (row) => ofComment(row),
    );
    await this.pages(
      (asked) => this.sources.runs(asked),
      since,
      async (row) => ofRun(row),
    );
    for (const companyId of this.options.configured()) {
      await this.pages(
        (asked) => this.sources.documents(companyId, asked),
        since,
        async (row) => {
          const found = await this.options.host.issues.documents.get(row.issue_id, row.key, row.company_id);
          if (found === null) return null;
          return ofDocument(row, {
            body: found.body,
            title: found.title,
            revisionNumber: found.latestRevisionNumber,
            agentId: found.updatedByAgentId ?? found.createdByAgentId,
            userId: found.updatedByUserId ?? found.createdByUserId,
          });
        },
      );
    }
    if (everything || Date.now() - this.forgotAt > FORGET_EVERY_MS) {
      await this.forgetting.run((companyId) => this.options.settings(companyId));
      this.forgotAt = Date.now();
    } else await this.forgetting.quick(new Date(Date.now() - QUICK_MS));
    this.goOnBeside();
    await this.options.afterwards?.();
  }

  private goOnBeside(): void {
    this.beside ??= (this.options.meanwhile?.() ?? Promise.resolve())
      .catch((error: unknown) =>
        this.options.host.logger.warn("work beside a round of memory did not end", { error: saying(error) }),
      )
      .finally(() => (this.beside = null));
  }

  /** Delivers page after page, each behind the one before, so that what cannot be sent keeps nothing else back. */
  private async pages<T extends { company_id: string; id: string; place: string }>(
    page: (asked: Asked) => Promise<T[]>,
    since: Date | null,
    item: (row: T) => Promise<Item | null>,
  ): Promise<void> {
    for (let after: Asked["after"] = null; ; ) {
      const rows = await page({ since, without: this.held(), after });
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last;
      const byCompany = new Map<string, Item[]>();
      for (const row of rows) {
        let made: Item | null = null;
        try {
          made = await item(row);
        } catch (error) {
          this.hold(row.company_id, saying(error));
          continue;
        }
        if (made === null) continue;
        if (takesPart(this.options.settings(row.company_id), made.agentId))
          (byCompany.get(row.company_id) ?? byCompany.set(row.company_id, []).get(row.company_id))?.push(made);
        else await this.options.ledger.mark([{ ...made.mark, status: "outside", error: null }]);
      }
      for (const [companyId, items] of byCompany) {
        const { sent, held } = await this.delivery.run(companyId, items);
        this.state.sent += sent.length;
        if (held !== null) this.hold(companyId, held);
        if (sent.length > 0) await this.options.onSent?.(companyId, sent);
      }
      this.goOnBeside();
    }
  }

  private hold(companyId: string, why: string): void {
    this.until.set(companyId, Date.now() + HOLD_MS);
    this.state.held[companyId] = why;
    this.wantsEverything = true;
  }

  private held(): string[] {
    for (const [companyId, until] of this.until) {
      if (until > Date.now()) continue;
      this.until.delete(companyId);
      delete this.state.held[companyId];
    }
    return [...this.until.keys()];
  }

  /** Lets companies that wait go on at once, such as after memhost came back. */
  release(): void {
    this.until.clear();
    this.state.held = {};
  }
}
