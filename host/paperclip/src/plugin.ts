// The plugin's parts and how they are joined. The worker makes one of it.
import type {
  PluginApiRequestInput,
  PluginApiResponse,
  PluginContext,
  PluginHealthDiagnostics,
} from "@paperclipai/plugin-sdk";
import { outside, Pump } from "./capture/pump";
import { settingsOf, type Settings } from "./config";
import type { Worker } from "./context";
import { Ledger } from "./ledger";
import { Lead } from "./lead";
import { saying, type Running } from "./memhost/client";
import {
  backAddress,
  dataRoot,
  directoryOf,
  dropServing,
  keepBackAddress,
  keepServing,
  makePrivate,
  serving,
} from "./memhost/directories";
import { Elsewhere, type Place } from "./memhost/elsewhere";
import { MemhostProcess } from "./memhost/process";
import { Memory } from "./memory";
import { Recalls } from "./recall";
import { answer } from "./routes";
import { Activity } from "./activity";
import { Budgets } from "./budgets";
import { enable, skillOfNew, type Made } from "./enable";
import { instruct } from "./instructions";
import { isOutdated } from "./mcp";
import { adopt, removeLeftovers } from "./memhost/leftovers";
import { registerPages } from "./pages";
import { boardOf, keyTrouble } from "./paperclip/board";
import { Spending } from "./costs";
import { registerTools } from "./tools";

/** What wakes the pump. */
const EVENTS = [
  "issue.comment.created",
  "agent.run.finished",
  "agent.run.failed",
  "agent.run.cancelled",
  "issue.document.created",
  "issue.document.updated",
  "issue.document.deleted",
  "issue.updated",
  "company.created",
  "cost_event.created",
] as const;
const TICK_MS = 8000;
const RECOVER_MS = 1000;
const RECOVER_TRIES = 20;
/** How long Paperclip has to tell the settings before a worker that took the place of a crashed one asks for them. */
const TELL_MS = 5000;
/** How often what was enabled is looked at. */
const FOLLOW_MS = 60_000;
/** How often agents' instructions are brought up to date. */
const INSTRUCT_MS = 3_600_000;

/** What is used where no settings name a memhost. */
const OWN = "the memhost of this server";
const NEIGHBOUR = "the memhost of another server of this Paperclip";

export interface Environment {
  pluginId: string;
  searchPath: string;
  from: string;
  dataRoot?: string;
  /** The machine and the process of this server, where they are not those of this process. */
  server?: string;
}

export class MemhostPlugin implements Worker {
  readonly memory = new Memory();
  readonly ledger: Ledger;
  readonly recalls: Recalls;
  readonly pump: Pump;
  readonly directory: string;
  readonly process: MemhostProcess;
  readonly activity: Activity;
  readonly spending: Spending;
  private readonly rows = new Map<string, Settings>();
  private readonly kept = new Map<string, Settings>();
  /** The settings as Paperclip told them last, as JSON. */
  private readonly told = new Map<string, string>();
  private readonly lead: Lead;
  private readonly timer: NodeJS.Timeout;
  /** Which memhost is used; null: not known yet. */
  private chosen: string | null = null;
  private elsewhere: Elsewhere | null = null;
  /** Whether this server serves and takes in memory, and not another one on the same database; null: not known yet. */
  private leads: boolean | null = null;
  /** The machine of the server that does. */
  private leader = "";
  private stopped = false;
  private followedAt = 0;
  private readonly startedAt = Date.now();
  /** Whether Paperclip has told settings by itself. */
  private wasTold = false;
  private hasAskedAll = false;
  private rereadAt = Date.now();
  private instructedAt = 0;
  private readonly instructed = new Set<string>();
  /** What enables or disables a company, or ended doing so. */
  private readonly turns = new Map<string, Promise<void>>();
  /** What is wrong with the board API keys of companies, as they were looked at last. */
  private readonly keys = new Map<string, string | null>();

  constructor(
    readonly ctx: PluginContext,
    environment: Environment,
  ) {
    const settings = (companyId: string): Settings => this.settings(companyId);
    this.directory = directoryOf(environment.dataRoot ?? dataRoot(), environment.pluginId);
    this.ledger = new Ledger(ctx);
    this.lead = new Lead(ctx, environment.server);
    this.recalls = new Recalls(ctx, this.memory, this.ledger, settings);
    this.activity = new Activity(ctx, (companyId) => this.rows.has(companyId));
    this.spending = new Spending(this);
    const budgets = new Budgets(ctx, this.memory, this.ledger);
    this.pump = new Pump({
      host: ctx,
      memory: this.memory,
      ledger: this.ledger,
      settings,
      configured: () => [...this.rows.keys()],
      leads: () => this.leads === true,
      onSent: (companyId, items) => this.activity.captured(companyId, items),
      meanwhile: async () => {
        await this.spending.run();
        await budgets.run();
        await this.follow();
      },
      afterwards: () => this.recalls.prune(),
    });
    this.process = new MemhostProcess({
      directory: this.directory,
      searchPath: environment.searchPath,
      from: environment.from,
      onUp: (running) => {
        try {
          keepServing(this.directory, running);
        } catch (error) {
          this.ctx.logger.warn("other servers of this Paperclip cannot find memhost", { error: saying(error) });
        }
        void outside(() => this.up(running));
      },
      onDown: (error) => this.down(error),
    });
    for (const event of EVENTS) ctx.events.on(event, async () => void this.pump.wake());
    // An issue, a comment or a document can be gone: what is gone is found in a whole round.
    ctx.jobs.register("reconcile", async () => this.pump.wake(true));
    registerTools(ctx.tools, {
      host: ctx,
      memory: this.memory,
      recalls: this.recalls,
      settings,
      onWrite: ({ companyId, agentId, runId, issueId }, what, count) =>
        this.wrote(companyId, what, count, { agentId, runId, issueId }),
    });
    registerPages(this);
    this.timer = setInterval(() => void outside(() => this.tick()), TICK_MS);
    this.timer.unref();
    outside(() => this.begin());
    outside(() => this.recoverLater(RECOVER_TRIES));
  }

  /** Finds out who leads, as soon as Paperclip's database answers. */
  private begin(): void {
    void this.takeTurns().catch((error: unknown) => {
      this.memory.down(`Paperclip's database does not answer: ${saying(error)}`);
      if (!this.stopped) setTimeout(() => this.begin(), RECOVER_MS).unref();
    });
  }

  private async tick(): Promise<void> {
    // Without an answer everything stays as it is: whoever leads cannot write either.
    if (this.leads !== null) await this.takeTurns().catch(() => undefined);
    await this.reread();
    await this.pump.wake();
  }

  /** Serves memory, or uses that of the server that does. */
  private async takeTurns(): Promise<void> {
    const { isOurs, machine } = await this.lead.ask();
    this.leader = machine;
    if (this.stopped || this.leads === isOurs) return;
    this.leads = isOurs;
    await this.choose();
  }

  /** Settings that were saved at another server on this database. */
  private async reread(): Promise<void> {
    if (Date.now() - this.rereadAt < FOLLOW_MS) return;
    this.rereadAt = Date.now();
    for (const id of new Set([...this.told.keys(), ...(await this.ledger.configured())])) {
      const told = this.told.get(id);
      const row = await this.ctx.config.get(id).catch(() => null);
      if (row !== null && told === this.told.get(id) && JSON.stringify(row) !== told) await this.use(row, id);
    }
  }

  /** Paperclip tells the settings when it starts the plugin, and not when it starts a worker again that crashed. */
  private recoverLater(tries: number): void {
    if (tries > 0)
      setTimeout(
        () =>
          void this.recover()
            .catch(() => false)
            .then((done) => done || this.recoverLater(tries - 1)),
        RECOVER_MS,
      ).unref();
  }

  /** Asks for settings that were not told, of the companies that have some. Paperclip refuses all while it is busy. */
  async recover(): Promise<boolean> {
    const companies = await this.ledger.configured();
    for (const id of companies) await this.ask(id);
    if (!companies.every((id) => this.rows.has(id)) || this.leads === null) return false;
    if (!this.lead.wasLeft || this.wasTold || this.hasAskedAll) return true;
    if (Date.now() - this.startedAt < TELL_MS) return false;
    // A company's first settings may have been saved while no worker ran. Paperclip logs an error for each company that
    // has none, so they are asked for once, and after a crash only.
    for (const { id } of await this.companies()) await this.ask(id);
    this.hasAskedAll = true;
    return true;
  }

  private async ask(companyId: string): Promise<void> {
    if (this.rows.has(companyId)) return;
    const row = await this.ctx.config.get(companyId).catch(() => null);
    if (row !== null && !this.rows.has(companyId)) await this.use(row, companyId);
  }

  settings(companyId: string): Settings {
    return this.rows.get(companyId) ?? this.kept.get(companyId) ?? settingsOf(null);
  }

  private async up(running: Running): Promise<void> {
    try {
      await this.ledger.use(running.storeId, running.pid === 0 ? null : this.directory);
      // Settings that were told before memory was up. A deleted company gets no row again.
      for (const { id } of await this.pump.sources.companies()) {
        const row = this.told.get(id);
        if (row !== undefined) await this.keep(id, JSON.parse(row) as Record<string, unknown>);
      }
      for (const row of await this.ledger.companies())
        if (row.settings !== null) this.kept.set(row.company_id, settingsOf(row.settings));
      this.memory.up(running);
      this.pump.release();
      this.ctx.logger.info("memhost is up", { runtime: running.runtime, pid: running.pid });
      for (const { adoptDirectory, deleteDirectories } of this.rows.values())
        await this.useLeftovers(adoptDirectory, deleteDirectories);
      this.followedAt = 0;
      await this.pump.wake(true);
    } catch (error) {
      this.ctx.logger.warn("memhost is up and Paperclip's database does not answer yet", { error: saying(error) });
      setTimeout(
        () => void ((this.elsewhere !== null || this.process.state.pid === running.pid) && this.up(running)),
        1000,
      ).unref();
    }
  }

  /** What was enabled is kept up to date: the gateway's address and token, and the skill of agents that were hired. */
  private async follow(): Promise<void> {
    if (Date.now() - this.followedAt < FOLLOW_MS) return;
    this.followedAt = Date.now();
    // To ask for the profile leaves an operation.
    if (Date.now() - this.instructedAt > INSTRUCT_MS) {
      this.instructedAt = Date.now();
      this.instructed.clear();
    }
    const runtime = this.memory.address?.runtime;
    if (runtime === undefined) return;
    for (const { company_id: companyId } of await this.ledger.companies()) {
      try {
        await this.inTurn(companyId, () => this.followOne(companyId, runtime));
      } catch (error) {
        this.ctx.logger.warn("what was enabled is not up to date", { companyId, error: saying(error) });
      }
    }
  }

  private async followOne(companyId: string, runtime: string): Promise<void> {
    const enabled = (await this.ledger.company(companyId))?.enabled ?? null;
    if (enabled === null || !this.isConfigured(companyId)) return;
    const { mcp } = enabled as Made;
    const settings = this.settings(companyId);
    const board = await boardOf(this.ctx, companyId, settings);
    if (board === null) return;
    if (!this.instructed.has(companyId)) this.keys.set(companyId, await keyTrouble(board));
    const with_ = { host: this.ctx, memory: this.memory, ledger: this.ledger, board, companyId, settings };
    if (mcp !== undefined && isOutdated(mcp, runtime)) await enable(with_);
    else await skillOfNew(with_);
    if (mcp !== undefined && !this.instructed.has(companyId)) await instruct(with_, mcp.connectionId);
    this.instructed.add(companyId);
  }

  /** Enables and disables a company one after the other: each of them makes and removes what the other one uses. */
  inTurn<T>(companyId: string, act: () => Promise<T>): Promise<T> {
    const own = (this.turns.get(companyId) ?? Promise.resolve()).then(act);
    this.turns.set(
      companyId,
      own.then(
        () => undefined,
        () => undefined,
      ),
    );
    return own;
  }

  /** Directories of earlier installations that the settings name. */
  private async useLeftovers(adopted: string | null, deleted: string[]): Promise<void> {
    if (this.elsewhere !== null || this.ledger.store === "") return;
    await removeLeftovers(this, deleted);
    if (adopted !== null) await adopt(this, adopted, (act) => this.exchange(act));
  }

  private down(error: string): void {
    this.memory.down(error);
    this.ctx.logger.warn("memhost ended and is started again", { error });
  }

  /** Paperclip tells the settings of a company. */
  async configChanged(row: Record<string, unknown>, companyId: string | null): Promise<void> {
    if (companyId === null) return;
    this.wasTold = true;
    await this.use(row, companyId);
  }

  /** Keeps settings in the ledger, which names the companies that have some for a worker that is started again. */
  private async keep(companyId: string, row: Record<string, unknown>): Promise<void> {
    const before = settingsOf((await this.ledger.company(companyId))?.settings ?? null);
    await this.ledger.setCompany(companyId, { settings: row });
    if (JSON.stringify(before.agents) !== JSON.stringify(settingsOf(row).agents)) await this.ledger.widen(companyId);
  }

  private async use(row: Record<string, unknown>, companyId: string): Promise<void> {
    const settings = settingsOf(row);
    this.rows.set(companyId, settings);
    this.told.set(companyId, JSON.stringify(row));
    // First of all: this worker may end while memhost is started again below. Before memory is up the database may not
    // answer yet; `up` writes them, too.
    const kept = this.keep(companyId, row);
    if (this.ledger.store === "") await kept.catch(() => undefined);
    else await kept;
    await this.linkBack();
    await this.choose();
    await outside(() => this.useLeftovers(settings.adoptDirectory, settings.deleteDirectories));
    this.followedAt = 0;
    this.instructed.delete(companyId);
    void this.pump.wake(true);
  }

  /** Uses the memhost that a company's settings name, for all companies; else that of the server that leads. */
  private async choose(): Promise<void> {
    const [companyId, named] = this.namingElsewhere();
    const url = named?.memhostUrl ?? null;
    if (url === null && this.leads === null) return;
    const name = url !== null ? `the memhost at ${url}` : this.leads === true ? OWN : NEIGHBOUR;
    // Another token, or another company whose token it is, makes another place of the same address.
    const place = url === null ? name : JSON.stringify([url, companyId, named?.memhostToken]);
    if (place === this.chosen) return;
    this.chosen = place;
    this.elsewhere?.stop();
    this.elsewhere = null;
    this.memory.down("another memhost is used");
    if (name === OWN) return outside(() => this.process.restart());
    await this.process.stop();
    // Another one was chosen meanwhile.
    if (this.chosen !== place) return;
    if (this.leads === true) dropServing(this.directory);
    this.elsewhere = new Elsewhere(
      name,
      url === null ? () => this.neighbour() : this.placeAt(url, companyId ?? ""),
      (running) => void outside(() => this.up(running)),
      (error) => this.down(error),
    );
    // Its timer looks for as long as the plugin runs, and the call that brought the settings ends.
    outside(() => this.elsewhere?.start());
  }

  /** The memhost of the server that leads, if it is on this machine. */
  private async neighbour(): Promise<Place> {
    const found = serving(this.directory);
    if (found !== null) return found;
    throw new Error(
      `it is on ${this.leader}; for several machines, run a memhost for all of them and give its address in the settings`,
    );
  }

  /** The memhost at an address. Its token is read again when it was down: it may be another one. */
  private placeAt(url: string, companyId: string): () => Promise<Place> {
    let token: string | null = null;
    return async () => {
      if (token === null || !this.memory.isUp) {
        const reference = this.rows.get(companyId)?.memhostToken ?? null;
        if (reference === null) throw new Error("its operator token is not in the settings");
        token = await this.ctx.secrets.resolve(reference, { companyId, configPath: "memhostToken" });
      }
      return { runtime: url, control: url, token, pid: 0 };
    };
  }

  health(companyId?: string): PluginHealthDiagnostics {
    const phase = this.elsewhere === null ? this.process.state.phase : this.memory.isUp ? "up" : "down";
    const trouble =
      (this.elsewhere === null ? this.process.state.error : this.memory.trouble) ??
      this.pump.state.error ??
      (companyId === undefined ? Object.values(this.pump.state.held)[0] : this.held(companyId)) ??
      (companyId === undefined ? [...this.keys.values()].find((why) => why !== null) : this.keys.get(companyId)) ??
      null;
    return {
      status: phase === "up" && trouble === null ? "ok" : "degraded",
      message:
        trouble === null
          ? `memhost is ${phase}${this.chosen === NEIGHBOUR ? ", served by another server of this Paperclip" : ""}`
          : phase === "up"
            ? trouble
            : `memhost is ${phase}: ${trouble}`,
      details: companyId === undefined ? { ...this.process.state, pump: { ...this.pump.state } } : { phase },
    };
  }

  /** The first company whose settings name a memhost. */
  private namingElsewhere(): [string, Settings] | [] {
    return [...this.rows].find(([, { memhostUrl }]) => memhostUrl !== null) ?? [];
  }

  usedElsewhere(): string | null {
    return this.namingElsewhere()[1]?.memhostUrl ?? null;
  }

  wrote(companyId: string, what: string, count: number, metadata: Record<string, unknown>): Promise<void> {
    return this.activity.wrote(companyId, what, count, metadata);
  }

  companies(): Promise<{ id: string; name: string }[]> {
    return this.pump.sources.companies();
  }

  held(companyId: string): string | null {
    return this.pump.state.held[companyId] ?? null;
  }

  wake(everything: boolean): void {
    void this.pump.wake(everything);
  }

  /** Whether Paperclip gives this company's documents, activity and secrets. */
  isConfigured(companyId: string): boolean {
    return this.rows.has(companyId);
  }

  /** Stops memhost, lets directories be exchanged, and starts it again. */
  private async exchange(act: () => string): Promise<void> {
    this.memory.down("another data directory is taken");
    const store = this.ledger.store;
    this.ledger.store = "";
    await this.process.stop();
    try {
      await this.ledger.moved(store, act());
    } finally {
      outside(() => this.process.restart());
    }
  }

  /** Lets the explorer link to Paperclip where the settings say that browsers reach it. */
  private async linkBack(): Promise<void> {
    const rows = [...this.rows.values()];
    const browsers = rows.flatMap(({ browserUrl }) => browserUrl ?? []);
    const named = browsers.length > 0 ? browsers : rows.flatMap(({ paperclipUrl }) => paperclipUrl ?? []);
    const origins = named.map((url) => new URL(url).origin);
    const [first] = origins;
    const present = backAddress(this.directory);
    if (first === undefined || (present !== null && origins.includes(present))) return;
    makePrivate(this.directory);
    keepBackAddress(this.directory, first);
    if (this.elsewhere !== null || this.process.state.phase === "starting") return;
    this.memory.down("memhost is started again with the address of Paperclip");
    await this.process.stop();
    outside(() => this.process.restart());
    // Who saves the settings goes on with Enable.
    for (let waited = 0; waited < 10_000 && !this.memory.isUp; waited += 50)
      await new Promise((resolve) => setTimeout(resolve, 50));
  }

  request(input: PluginApiRequestInput): Promise<PluginApiResponse> {
    return answer(this, input);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.stopped = true;
    this.elsewhere?.stop();
    this.memory.down("the plugin stops");
    await this.process.stop();
    if (this.leads !== true) return;
    if (this.elsewhere === null) dropServing(this.directory);
    await this.lead.release().catch(() => undefined);
  }
}
