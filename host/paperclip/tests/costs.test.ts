import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { settingsOf } from "../src/config";
import { Spending, wholeCents } from "../src/costs";
import { Ledger } from "../src/ledger";
import { Memory } from "../src/memory";
import type { Worker } from "../src/context";
import { Pump } from "../src/capture/pump";
import { FakeHost } from "./fakes/host";
import { FakeMemhost } from "./fakes/memhost";

let fake: FakeHost;
let memhost: FakeMemhost;
let board: Server;
let plugin: Worker;
let company: string;
let agent: string;
let posted: { path: string; body: Record<string, unknown> }[];
/** Paperclip takes the entry, and the answer is lost. */
let losesAnswers = false;
/** Paperclip refuses an entry about this issue. */
let goneIssue: string | null = null;

beforeEach(async () => {
  [fake, memhost] = await Promise.all([FakeHost.make(), new FakeMemhost().start()]);
  posted = [];
  losesAnswers = false;
  goneIssue = null;
  company = await fake.company("Alpha");
  agent = await fake.agent(company, "Ada");
  board = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    if (request.method === "GET")
      return response.end(
        JSON.stringify(posted.filter(({ path }) => path.endsWith("/finance-events")).map(({ body }) => body)),
      );
    const body = JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>;
    if (goneIssue !== null && body.issueId === goneIssue) return response.writeHead(500).end("{}");
    posted.push({ path: request.url ?? "", body });
    if (request.url?.endsWith("/cost-events"))
      await fake.pg.query(
        "INSERT INTO cost_events (company_id, agent_id, billing_code, cost_cents) VALUES ($1, $2, $3, $4)",
        [company, body.agentId, body.billingCode, body.costCents],
      );
    if (losesAnswers) return request.socket.destroy();
    response.writeHead(201).end("{}");
  });
  await new Promise<void>((resolve) => board.listen(0, "127.0.0.1", resolve));
  const settings = settingsOf({ paperclipUrl: `http://127.0.0.1:${(board.address() as AddressInfo).port}` });
  const memory = new Memory();
  memory.up(memhost.address);
  const ledger = new Ledger(fake.host);
  await ledger.use("store-1", null);
  const pump = new Pump({ host: fake.host, memory, ledger, settings: () => settings, configured: () => [] });
  plugin = {
    ctx: fake.host,
    memory,
    ledger,
    companies: () => pump.sources.companies(),
    isConfigured: () => true,
    settings: () => settings,
  } as unknown as Worker;
});
afterEach(() => {
  memhost.stop();
  board.closeAllConnections();
  board.close();
});

let number = 0;
const event = (costCents: number, agentId: string, minute = 0) => ({
  id: `00000000-0000-4000-8000-${String((number += 1)).padStart(12, "0")}`,
  companyId: company,
  operationId: "o",
  agentId,
  provider: "acme",
  biller: null,
  billingType: "metered_api" as const,
  costStatus: "reported" as const,
  model: "embed-1",
  inputTokens: 3,
  embeddingTokens: 4,
  cachedInputTokens: 0,
  outputTokens: 0,
  costCents,
  occurredAt: new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(),
});
const later = () =>
  fake.pg.query(`UPDATE plugin_memhost_d7b1543049.costs SET updated_at = now() - interval '1 minute'`);

test("fractions of a cent are carried and not lost", () => {
  let rest = 0;
  let total = 0;
  for (let n = 0; n < 1000; n += 1) {
    const made = wholeCents(0.333333, rest);
    rest = made.rest;
    total += made.cents;
    expect(rest).toBeGreaterThanOrEqual(0);
    expect(rest).toBeLessThan(1_000_000);
  }
  expect(total * 1_000_000 + rest).toBe(333_333_000);
});

test("each cost is entered once, oldest first, with agent, model and billing code", async () => {
  memhost.costs = [event(1.5, agent, 1), event(0.7, agent, 2), event(0.7, agent, 3)];
  await new Spending(plugin).run();
  await new Spending(plugin).run();
  expect(posted.map(({ body }) => body.costCents)).toEqual([1, 1, 0]);
  expect(posted[0]?.body).toMatchObject({
    agentId: agent,
    model: "embed-1",
    inputTokens: 7,
    billingCode: `memhost:${memhost.costs[0]?.id}`,
  });
});

test("a cost of nobody is a finance event", async () => {
  memhost.costs = [event(2, "operator")];
  await new Spending(plugin).run();
  expect(posted).toMatchObject([
    { path: `/api/companies/${company}/finance-events`, body: { amountCents: 2, eventKind: "inference_charge" } },
  ]);
});

for (const [form, of] of [
  ["cost", () => agent],
  ["finance", () => "operator"],
] as const) {
  test(`a ${form} event whose answer was lost is there once`, async () => {
    memhost.costs = [event(5, of())];
    losesAnswers = true;
    await new Spending(plugin).run();
    losesAnswers = false;
    await later();
    await new Spending(plugin).run();
    await new Spending(plugin).run();
    expect(posted).toHaveLength(1);
  });

  test(`a ${form} event that was never sent is sent after the crash`, async () => {
    memhost.costs = [event(5, of())];
    const real = plugin.settings;
    plugin.settings = () => settingsOf({ paperclipUrl: "http://127.0.0.1:1" });
    await new Spending(plugin).run();
    expect(posted).toHaveLength(0);
    plugin.settings = real;
    await later();
    await new Spending(plugin).run();
    expect(posted.map(({ body }) => body.costCents ?? body.amountCents)).toEqual([5]);
  });
}

test("a cursor that memhost does not know any more begins again, and nothing is entered twice", async () => {
  memhost.costs = [event(1, agent), event(2, agent), event(3, agent)];
  await new Spending(plugin).run();
  memhost.trouble = ({ path, query }) =>
    path.endsWith("/cost-events") && query.get("cursor") === "3"
      ? { status: 400, body: { code: "invalid_request", detail: "the cursor is another host's" } }
      : null;
  await new Spending(plugin).run();
  expect(posted.map(({ body }) => body.costCents)).toEqual([1, 2, 3]);
});

const charge = (amountCents: number, eventKind = "platform_fee") => ({
  id: `00000000-0000-4000-9000-${String((number += 1)).padStart(12, "0")}`,
  companyId: company,
  eventKind,
  direction: "debit" as const,
  biller: "acme",
  amountCents,
  currency: "USD",
  estimated: false,
  occurredAt: "2026-01-01T00:00:00Z",
  createdAt: "2026-01-01T00:00:00Z",
  createdBy: "operator",
});

test("flat charges are finance events, once each and oldest first; a kind that Paperclip does not know is a fee", async () => {
  memhost.charges = [charge(1), charge(2), charge(3, "seat")];
  await new Spending(plugin).run();
  memhost.charges.push(charge(4));
  await new Spending(plugin).run();
  expect(posted.map(({ path, body }) => [path.split("/").at(-1), body.amountCents, body.eventKind])).toEqual(
    [1, 2, 3, 4].map((cents) => ["finance-events", cents, "platform_fee"]),
  );
  expect(posted[2]?.body.metadataJson).toMatchObject({ eventKind: "seat" });
});

test("a cost of an issue that is gone in Paperclip is entered without it and holds nothing up", async () => {
  goneIssue = "00000000-0000-4000-8000-00000000dead";
  memhost.costs = [{ ...event(3, agent), issueId: goneIssue }, event(4, agent)];
  await new Spending(plugin).run();
  expect(posted.map(({ body }) => [body.costCents, body.issueId])).toEqual([
    [3, null],
    [4, null],
  ]);
});
