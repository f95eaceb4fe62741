// The plugin as a whole, with a memhost that another program started: what settings change, and what pages are told.
import { createServer, type Server } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import type { PluginContext } from "@paperclipai/plugin-sdk";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { settingsOf } from "../src/config";
import { Spending } from "../src/costs";
import { Ledger, type Mark } from "../src/ledger";
import { Memory } from "../src/memory";
import { MemhostPlugin } from "../src/plugin";
import { Pump } from "../src/capture/pump";
import { FakeHost, NAMESPACE } from "./fakes/host";
import { FakeMemhost } from "./fakes/memhost";

type Handler = (params: Record<string, unknown>, context?: unknown) => Promise<Record<string, unknown>>;

let root: string;
let fake: FakeHost;
let memhost: FakeMemhost;
let alpha: string;
let made: MemhostPlugin[];
let boards: Server[];
/** The plugin's data and actions. */
let handlers: Map<string, Handler>;

beforeEach(async () => {
  root = mkdtempSync(path.join(tmpdir(), "memhost-wiring-"));
  [fake, memhost] = await Promise.all([FakeHost.make(), new FakeMemhost().start()]);
  memhost.trouble = (call) => (call.path === "/info" ? { status: 200, body: { storeId: "far", version: "9" } } : null);
  alpha = await fake.company("Alpha");
  fake.members.push({
    companyId: alpha,
    principalType: "user",
    principalId: "olga",
    membershipRole: "owner",
    status: "active",
  });
  made = [];
  boards = [];
  handlers = new Map();
});
afterEach(async () => {
  vi.useRealTimers();
  for (const one of made) await one.stop();
  for (const one of boards) {
    one.closeAllConnections();
    one.close();
  }
  memhost.stop();
  rmSync(root, { recursive: true, force: true });
});

function plugin(get: (company: string) => Promise<unknown> = none): MemhostPlugin {
  const nothing = { register: () => {}, on: () => {} };
  const keep = { register: (key: string, handler: Handler) => void handlers.set(key, handler) };
  const ctx = {
    ...fake.host,
    config: { get },
    events: nothing,
    jobs: nothing,
    tools: nothing,
    data: keep,
    actions: keep,
    secrets: { resolve: async ({ secretId }: { secretId: string }) => `token of ${secretId}` },
  };
  const one = new MemhostPlugin(ctx as unknown as PluginContext, {
    pluginId: "p",
    searchPath: "/nowhere",
    from: import.meta.url,
    dataRoot: root,
    server: "here 1",
  });
  made.push(one);
  return one;
}
const none = async (): Promise<unknown> => {
  throw new Error("company context is required");
};
const until = (what: () => boolean): Promise<void> => vi.waitFor(() => expect(what()).toBe(true), 8000);
const far = (more: Record<string, unknown> = {}, token = "one"): Record<string, unknown> => ({
  memhostUrl: memhost.address.runtime,
  memhostToken: { type: "secret_ref", secretId: token },
  ...more,
});
/** A Paperclip that answers as `on` says. */
async function board(on: Parameters<typeof createServer>[1]): Promise<string> {
  const one = createServer(on as never);
  boards.push(one);
  await new Promise<void>((resolve) => one.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(one.address() as AddressInfo).port}`;
}
const asked = (key: string, params: Record<string, unknown> = {}): Promise<Record<string, unknown>> => {
  const handler = handlers.get(key);
  if (handler === undefined) throw new Error(`there is no ${key}`);
  return handler({ companyId: alpha, ...params }, { actor: { type: "user", userId: "olga", agentId: null } });
};
const cost = (agentId: string) => ({
  id: "00000000-0000-4000-8000-000000000001",
  companyId: alpha,
  operationId: "o",
  agentId,
  provider: "acme",
  billingType: "metered_api" as const,
  model: "m",
  inputTokens: 1,
  cachedInputTokens: 0,
  outputTokens: 0,
  costCents: 2,
  occurredAt: "2026-07-01T10:00:00Z",
});

test("a pilot that changes before memory is up has what it left out looked at again", async () => {
  const before = new Ledger(fake.host);
  await before.use("far", null);
  await before.setCompany(alpha, { settings: far({ agents: ["a"] }), enrolled: true });
  const left: Mark = {
    kind: "comment",
    source_id: "11111111-1111-4111-8111-111111111111",
    company_id: alpha,
    issue_id: null,
    document_key: null,
    revision: "r",
    status: "outside",
    parts: 1,
    error: null,
  };
  await before.mark([left]);
  const one = plugin();
  await one.configChanged(far({ agents: [] }), alpha);
  await until(() => one.memory.isUp);
  expect(await one.ledger.counts(alpha)).toEqual([]);
});

test("first settings are in the ledger although the worker ends while memhost is started again", async () => {
  const one = plugin();
  await until(() => one.health().message !== undefined);
  // No memhost is found, so this waits for it.
  void one.configChanged({ paperclipUrl: "http://127.0.0.1:3100" }, alpha).catch(() => undefined);
  await vi.waitFor(async () => expect(await new Ledger(fake.host).configured()).toEqual([alpha]), 4000);
});

test("after a crash the settings of all companies are asked for once, unless Paperclip tells some", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const beta = await fake.company("Beta");
  const calls: string[] = [];
  const start = async (left: boolean): Promise<MemhostPlugin> => {
    if (left) await fake.pg.exec(`UPDATE ${NAMESPACE}.lead SET holder = 'gone 7', until = now() - interval '1 second'`);
    const one = plugin(async (company) => {
      calls.push(company);
      return { agents: ["a"] };
    });
    await vi.waitFor(async () =>
      expect(await fake.host.db.query(`SELECT holder FROM ${NAMESPACE}.lead`, [])).toEqual([{ holder: "here 1" }]),
    );
    return one;
  };
  const recovered = (one: MemhostPlugin): Promise<void> =>
    vi.waitFor(async () => expect(await one.recover()).toBe(true), 4000);
  const ended = await start(false);
  await recovered(ended);
  await ended.stop();
  await recovered(await start(false));
  for (const one of made) await one.stop();
  expect(calls).toEqual([]);
  const told = await start(true);
  await told.configChanged({ agents: ["b"] }, alpha);
  await recovered(told);
  await told.stop();
  expect(calls).toEqual([]);
  await new Ledger(fake.host).drop(alpha);
  const crashed = await start(true);
  expect([await crashed.recover(), calls]).toEqual([false, []]);
  vi.setSystemTime(Date.now() + 6000);
  await recovered(crashed);
  expect(crashed.isConfigured(beta)).toBe(true);
  expect(calls.toSorted()).toEqual([alpha, beta].toSorted());
});

test("a token that is saved anew for a memhost elsewhere is used at once", async () => {
  const one = plugin();
  await one.configChanged(far(), alpha);
  await until(() => one.memory.isUp);
  expect(one.memory.address?.token).toBe("token of one");
  await one.configChanged(far({}, "two"), alpha);
  await until(() => one.memory.isUp && one.memory.address?.token === "token of two");
});

test("the plugin enters costs and follows budgets", async () => {
  const posts: string[] = [];
  const url = await board((request, response) => {
    if (request.method === "POST") posts.push(request.url ?? "");
    response.writeHead(request.method === "POST" ? 201 : 200).end("[]");
  });
  memhost.costs = [cost(await fake.agent(alpha, "Ada"))];
  await fake.pg.query(`UPDATE companies SET status = 'paused', pause_reason = 'budget' WHERE id = $1`, [alpha]);
  const one = plugin();
  await one.configChanged(far({ paperclipUrl: url }), alpha);
  await until(() => posts.some((path) => path.endsWith(`/companies/${alpha}/cost-events`)));
  await until(() => memhost.calls.some(({ method, path }) => method !== "GET" && path.includes("/budgets")));
});

test("a Paperclip that does not answer keeps no backlog waiting", async () => {
  const url = await board(() => {});
  memhost.costs = [cost(await fake.agent(alpha, "Ada"))];
  const settings = settingsOf({ paperclipUrl: url });
  const memory = new Memory();
  memory.up(memhost.address);
  const ledger = new Ledger(fake.host);
  await ledger.use("far", null);
  let waits = 0;
  const spending = new Spending({
    ctx: fake.host,
    memory,
    ledger,
    companies: async () => [{ id: alpha, name: "Alpha" }],
    isConfigured: () => true,
    settings: () => settings,
  } as never);
  const issue = "22222222-2222-4222-8222-222222222222";
  await fake.pg.query(`INSERT INTO issues (id, company_id, title) VALUES ($2, $1, 't')`, [alpha, issue]);
  await fake.pg.query(
    `INSERT INTO issue_comments (id, company_id, issue_id, body, author_type, created_at) SELECT gen_random_uuid(), $1, $2, 'comment ' || n, 'user', now() - (4000 - n) * interval '1 second' FROM generate_series(1, 2500) n`,
    [alpha, issue],
  );
  const meanwhile = async (): Promise<void> => {
    waits += 1;
    await spending.run();
    waits -= 1;
  };
  const pump = new Pump({ host: fake.host, memory, ledger, settings: () => settings, configured: () => [], meanwhile });
  await pump.wake(true);
  expect([memhost.texts(alpha).length, waits]).toEqual([2500, 1]);
});

test("a company's trouble with costs is its own, and stays until its entry is made", async () => {
  const beta = await fake.company("Beta");
  let answers = false;
  const url = await board((_, response) => void response.writeHead(answers ? 200 : 503).end("[]"));
  memhost.costs = [cost(await fake.agent(alpha, "Ada"))];
  const one = plugin();
  await one.configChanged(far({ paperclipUrl: url }), alpha);
  await until(() => one.spending.trouble(alpha) !== null);
  expect(one.spending.trouble(beta)).toBe(null);
  answers = true;
  // The entry is on its way for twenty seconds; the next runs do not know yet whether it was made.
  const clock = vi.spyOn(Date, "now");
  const later = (ms: number): void => void clock.mockReturnValue(new Date().getTime() + ms);
  later(15_000);
  await one.spending.run();
  expect(one.spending.trouble(alpha)).not.toBe(null);
  await fake.pg.query(`UPDATE ${NAMESPACE}.costs SET updated_at = now() - interval '1 minute'`);
  later(30_000);
  await one.spending.run();
  expect(one.spending.trouble(alpha)).toBe(null);
  clock.mockRestore();
});

test("the page is told what is not known, and that there is more", async () => {
  const one = plugin();
  expect(await asked("overview")).toMatchObject({ isCounted: false, isConfigured: false, reviews: null, costs: null });
  const info = memhost.trouble;
  let pages = 0;
  memhost.trouble = (call) => {
    if (call.path.endsWith("/costs")) return { status: 200, body: { total: { costCents: 5, writes: 1 } } };
    if (!call.path.endsWith("/reviews")) return info?.(call) ?? null;
    pages += 1;
    // A page of reviews may be empty although more follow.
    const items = pages < 3 ? [] : [{ id: "r" }];
    return { status: 200, body: { items, nextCursor: String(pages) } };
  };
  await one.configChanged(far(), alpha);
  await until(() => one.memory.isUp);
  expect(await asked("overview")).toMatchObject({
    isCounted: true,
    isConfigured: true,
    reviews: 1,
    hasMoreReviews: true,
    costs: { monthCents: 5 },
  });
  memhost.trouble = (call) =>
    /reviews$|costs$/.test(call.path) ? { status: 500, body: { code: "internal", detail: "no" } } : null;
  expect(await asked("overview")).toMatchObject({ isCounted: true, reviews: null, costs: { monthCents: null } });
  expect((await asked("settings")).elsewhere).toBe(memhost.address.runtime);
});

test("a search that failed is an error, and no empty answer", async () => {
  const one = plugin();
  await one.configChanged(far(), alpha);
  await until(() => one.memory.isUp);
  memhost.trouble = (call) =>
    call.path.endsWith("/query") ? { status: 500, body: { code: "internal", detail: "the disk" } } : null;
  await expect(asked("search", { query: "what" })).rejects.toThrow("memory was not searched");
});

test("a company is enabled and disabled once at a time, whoever asks for it", async () => {
  let running = 0;
  let most = 0;
  const url = await board(async (request, response) => {
    most = Math.max(most, (running += 1));
    await new Promise((resolve) => setTimeout(resolve, 10));
    running -= 1;
    response.writeHead(request.method === "POST" ? 201 : 200).end("{}");
  });
  const one = plugin();
  await one.configChanged(far({ paperclipUrl: url }), alpha);
  await until(() => one.memory.isUp);
  await Promise.all([asked("enable"), asked("enable"), asked("disable"), one.inTurn(alpha, async () => undefined)]);
  expect(most).toBe(1);
});
