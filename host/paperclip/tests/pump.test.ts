import { afterEach, beforeEach, expect, test } from "vitest";
import { Pump } from "../src/capture/pump";
import { Sources } from "../src/capture/sources";
import { preview } from "../src/backfill";
import { Budgets } from "../src/budgets";
import { settingsOf, type Settings } from "../src/config";
import type { Context } from "../src/context";
import type { Ledger } from "../src/ledger";
import type { Memory } from "../src/memory";
import type { Host } from "../src/paperclip/host";
import type { FakeHost } from "./fakes/host";
import type { FakeMemhost } from "./fakes/memhost";
import { room } from "./fakes/room";

let fake: FakeHost;
let memhost: FakeMemhost;
let memory: Memory;
let ledger: Ledger;
let settings: Settings;
let alpha: string;
let beta: string;
let issue: string;

const pumped = async (pump: Pump = make()): Promise<Pump> => {
  await pump.wake(true);
  return pump;
};
const make = (): Pump =>
  new Pump({ host: fake.host, memory, ledger, settings: () => settings, configured: () => [...fake.configured] });
const rows = async (): Promise<{ kind: string; status: string; error: string | null }[]> =>
  (
    await fake.pg.query<{ kind: string; status: string; error: string | null }>(
      `SELECT kind, status, error FROM ${ledger.namespace}.ledger ORDER BY kind, status`,
    )
  ).rows;

beforeEach(async () => {
  ({ fake, memhost, memory, ledger } = await room());
  settings = settingsOf(null);
  alpha = await fake.company("Alpha");
  beta = await fake.company("Beta");
  issue = await fake.issue(alpha, "Harbour");
});
afterEach(() => memhost.stop());

test("a comment is captured once, whole, in its company, with where it is from", async () => {
  const text = `Größe 港 🦀 ${"lang ".repeat(2000)}`;
  const id = await fake.comment(alpha, issue, text);
  const pump = await pumped();
  await pumped(pump);
  expect(memhost.events).toHaveLength(1);
  expect(memhost.events[0]).toMatchObject({
    company: alpha,
    hookKind: "issue_comment_capture",
    payload: { text },
    scope: { companyId: alpha, issueId: issue },
    source: { kind: "issue_comment", commentId: id, issueId: issue },
    metadata: { authorUserId: "local-board" },
    replacesSource: false,
  });
});

test("comments of Paperclip itself and deleted ones are no memory", async () => {
  await fake.comment(alpha, issue, "Status changed", { author_type: "system" });
  await fake.comment(alpha, issue, "gone", { deleted_at: new Date().toISOString() });
  await pumped();
  expect(memhost.events).toEqual([]);
});

test("an edit is as new as the edit, and not as the comment", async () => {
  const id = await fake.comment(alpha, issue, "one", {
    created_at: "2026-01-01T00:00:00Z",
    updated_at: "2026-01-01T00:00:00Z",
  });
  const pump = await pumped();
  await fake.pg.query("UPDATE issue_comments SET body = 'two', updated_at = '2026-02-01T00:00:00Z' WHERE id = $1", [
    id,
  ]);
  await pumped(pump);
  expect(memhost.events.map(({ triggeredAt }) => triggeredAt)).toEqual([
    "2026-01-01T00:00:00.000Z",
    "2026-02-01T00:00:00.000Z",
  ]);
});

test("an edited comment replaces itself, and an edit back is captured again", async () => {
  const id = await fake.comment(alpha, issue, "one");
  const pump = await pumped();
  for (const body of ["two", "one"]) {
    await fake.pg.query("UPDATE issue_comments SET body = $1, updated_at = clock_timestamp() WHERE id = $2", [
      body,
      id,
    ]);
    await pumped(pump);
  }
  expect(memhost.texts(alpha)).toEqual(["one", "two", "one"]);
  expect(memhost.events.map(({ replacesSource }) => replacesSource)).toEqual([false, true, true]);
  expect(new Set(memhost.events.map(({ hookId }) => hookId)).size).toBe(3);
});

test("a worker that ends between delivery and ledger delivers the same event again", async () => {
  await fake.comment(alpha, issue, "once");
  fake.failNextWrite = true;
  const pump = await pumped();
  expect(pump.state.held[alpha]).toContain("ended here");
  await pumped();
  expect(memhost.texts(alpha)).toEqual(["once"]);
  expect(await rows()).toEqual([{ kind: "comment", status: "sent", error: null }]);
});

test("after an outage everything is caught up, once and in order", async () => {
  memhost.trouble = () => ({ status: 503, body: { code: "busy", detail: "busy" } });
  for (let n = 0; n < 30; n += 1)
    await fake.comment(alpha, issue, `comment ${n}`, { created_at: new Date(2026, 0, 1, 0, 0, n).toISOString() });
  const pump = await pumped();
  expect(pump.state.held[alpha]).toBe("busy");
  expect(memhost.events).toEqual([]);
  memhost.trouble = null;
  pump.release();
  await pumped(pump);
  expect(memhost.texts(alpha)).toEqual(Array.from({ length: 30 }, (_, n) => `comment ${n}`));
});

test("a memhost that is killed in the middle of a batch has every event once and in order afterwards", async () => {
  const wanted = Array.from({ length: 700 }, (_, n) => `comment ${n}`);
  for (const [n, body] of wanted.entries())
    await fake.comment(alpha, issue, body, { created_at: new Date(2026, 0, 1, 0, 0, n).toISOString() });
  const pump = make();
  for (const diesAfter of [300, 0, 150]) {
    memhost.diesAfter = diesAfter;
    pump.release();
    await pumped(pump);
    expect(pump.state.held[alpha]).toContain("does not answer");
  }
  expect((await rows()).length).toBe(0);
  pump.release();
  await pumped(pump);
  expect(memhost.texts(alpha)).toEqual(wanted);
  expect((await rows()).every(({ status }) => status === "sent")).toBe(true);
});

test("one company that waits does not hold the others", async () => {
  await fake.comment(alpha, issue, "for alpha");
  await fake.comment(beta, await fake.issue(beta, "Bread"), "for beta");
  memhost.trouble = ({ company }) =>
    company === alpha ? { status: 503, body: { code: "importing", detail: "importing" } } : null;
  await pumped();
  expect(memhost.texts(beta)).toEqual(["for beta"]);
  expect(memhost.texts(alpha)).toEqual([]);
});

test("what memhost refuses for good is told and not sent for ever", async () => {
  await fake.comment(alpha, issue, "poison");
  await fake.comment(alpha, issue, "fine");
  memhost.outcome = (event) =>
    event.payload?.text === "poison" ? { outcome: "refused", problem: { code: "invalid_request", detail: "no" } } : {};
  const pump = await pumped();
  const calls = memhost.calls.length;
  await pumped(pump);
  expect(memhost.calls.filter(({ path }) => path.endsWith("/batch"))).toHaveLength(1);
  expect(memhost.calls.length).toBe(calls);
  expect(await rows()).toEqual([
    { kind: "comment", status: "refused", error: "no" },
    { kind: "comment", status: "sent", error: null },
  ]);
});

test("what no binding takes waits, with the reason, and is tried again", async () => {
  await fake.comment(alpha, issue, "later");
  memhost.outcome = () => ({ outcome: "not_taken", notTaken: { operationId: "o", reason: "the binding is disabled" } });
  const pump = await pumped();
  expect(await rows()).toEqual([{ kind: "comment", status: "waiting", error: "the binding is disabled" }]);
  memhost.outcome = () => ({});
  await fake.pg.query(`UPDATE ${ledger.namespace}.ledger SET updated_at = now() - interval '2 minutes'`);
  await pumped(pump);
  expect(memhost.texts(alpha)).toEqual(["later"]);
});

test("another store knows nothing of what the one before took", async () => {
  await fake.comment(alpha, issue, "again");
  await pumped();
  memhost.events.length = 0;
  await ledger.use("store-2", "/elsewhere");
  await pumped();
  expect(memhost.texts(alpha)).toEqual(["again"]);
});

test("a run is captured with agent, run and issue, without what recall gave it", async () => {
  const agent = await fake.agent(alpha, "Ada");
  const id = await fake.run(alpha, agent, {
    context_snapshot: { issueId: issue },
    result_json: { stdout: "<memhost-recall>\n- known\n</memhost-recall>\nnew" },
  });
  await fake.run(alpha, agent, { stdout_excerpt: "from the excerpt" });
  await fake.run(alpha, agent, { finished_at: null, stdout_excerpt: "not yet" });
  await pumped();
  expect(
    memhost
      .texts(alpha)
      .map((text) => text.trim())
      .sort(),
  ).toEqual(["from the excerpt", "new"]);
  expect(memhost.events.find(({ payload }) => payload?.text?.includes("new"))).toMatchObject({
    scope: { agentId: agent, runId: id, issueId: issue },
    source: { kind: "run", runId: id, issueId: issue },
  });
});

test("a run that Paperclip posted as a comment is remembered once, by whichever of the two is there", async () => {
  const agent = await fake.agent(alpha, "Ada");
  const more = { context_snapshot: { issueId: issue }, result_json: { stdout: "The bridge has 7 arches.\n" } };
  const [first, second] = [await fake.run(alpha, agent, more), await fake.run(alpha, agent, more)];
  const post = (run: string) =>
    fake.comment(alpha, issue, "Done: The bridge has 7 arches.", {
      author_type: "agent",
      derived_author_agent_id: agent,
      derived_created_by_run_id: run,
    });
  const comment = await post(first);
  const pump = await pumped();
  const sources = () => memhost.events.map(({ source }) => [source?.kind, source?.runId]);
  expect(sources().sort()).toEqual([
    ["issue_comment", first],
    ["run", second],
  ]);
  // The comment may come after the run.
  await post(second);
  await pumped(pump);
  expect(memhost.forgotten.at(-1)?.sources).toEqual([{ kind: "run", runId: second }]);
  expect(sources().at(-1)).toEqual(["issue_comment", second]);
  // Without the comment the run is the source, and is newer than what was forgotten of the comment.
  await fake.pg.query("UPDATE issue_comments SET deleted_at = now(), body = '' WHERE id = $1", [comment]);
  const before = Date.now();
  await pumped(pump);
  expect(sources().at(-1)).toEqual(["run", first]);
  expect(Date.parse(memhost.events.at(-1)?.triggeredAt ?? "")).toBeGreaterThanOrEqual(before);
});

test("what failed around a run is no memory; what it said before is", async () => {
  const agent = await fake.agent(alpha, "Ada");
  await fake.run(alpha, agent, { status: "failed", error: "no Codex credentials" });
  await fake.run(alpha, agent, { status: "failed", error: "timeout", stdout_excerpt: "half of the bridge is painted" });
  await pumped();
  expect(memhost.texts(alpha)).toEqual(["half of the bridge is painted"]);
  expect(await rows()).toMatchObject([{ status: "empty" }, { status: "sent" }]);
});

test("what waits to be taken in is what capture takes", async () => {
  for (const key of ["plan", "continuation-summary"])
    await fake.pg.query(
      "INSERT INTO issue_documents (company_id, issue_id, document_id, key) VALUES ($1, $2, gen_random_uuid(), $3)",
      [alpha, issue, key],
    );
  let isConfigured = false;
  const parts = { ctx: fake.host, ledger, isConfigured: () => isConfigured } as unknown as Context;
  const documents = async () => (await preview(parts, alpha)).find(({ kind }) => kind === "document")?.count;
  expect(await documents()).toBe(0);
  isConfigured = true;
  expect(await documents()).toBe(1);
});

test("documents that are gone keep nothing back that was written after them", async () => {
  await fake.pg.query(
    `INSERT INTO issue_documents (company_id, issue_id, document_id, key, updated_at)
     SELECT $1, $2, gen_random_uuid(), CASE n WHEN 1001 THEN 'plan' ELSE 'gone-' || n END, now() - (2000 - n) * interval '1 second'
     FROM generate_series(1, 1001) n`,
    [alpha, issue],
  );
  fake.documents.set("plan", { body: "text of the plan", latestRevisionNumber: 1, title: "Plan" });
  fake.configured.add(alpha);
  await pumped();
  expect(memhost.texts(alpha)).toEqual(["text of the plan"]);
});

test("a row of the ledger is found by its source, whatever PostgreSQL knows of its table", async () => {
  await fake.pg.query(
    `INSERT INTO ${ledger.namespace}.ledger (store, kind, source_id, company_id, revision, status)
     SELECT 'store-1', 'comment', gen_random_uuid(), $1, '', 'sent' FROM generate_series(1, 500)`,
    [alpha],
  );
  await fake.pg.exec(`BEGIN; UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE relname ~ '^(ledger|issue)'`);
  try {
    const asked: [string, unknown[]][] = [];
    const query = (sql: string, params: unknown[] = []) => (asked.push([sql, params]), fake.host.db.query(sql, params));
    const host = { ...fake.host, db: { ...fake.host.db, query } } as Host;
    const sources = new Sources(host, ledger);
    const all = { since: null, without: [], after: null };
    await sources.comments(all);
    await sources.runs(all);
    await sources.documents(alpha, all);
    await sources.deletedComments(new Date(0));
    await preview({ ctx: host, ledger, isConfigured: () => true } as unknown as Context, alpha);
    expect(asked).toHaveLength(5);
    for (const [sql, params] of asked) {
      const plan = (await fake.pg.query<Record<string, string>>(`EXPLAIN ${sql}`, params)).rows.flatMap(Object.values);
      expect(plan.join("\n")).toMatch(/ledger_source on ledger own.*\n.*Index Cond: \(source_id = /);
      expect(plan.join("\n")).not.toMatch(/(ledger_pkey|ledger_company) on ledger/);
    }
  } finally {
    await fake.pg.exec("ROLLBACK");
  }
});

test("documents of configured companies are captured by revision; Paperclip's own are not", async () => {
  for (const key of ["plan", "continuation-summary"]) {
    await fake.pg.query(
      "INSERT INTO issue_documents (company_id, issue_id, document_id, key) VALUES ($1, $2, gen_random_uuid(), $3)",
      [alpha, issue, key],
    );
    fake.documents.set(key, { body: `text of ${key}`, latestRevisionNumber: 1, title: "Plan" });
  }
  const pump = await pumped();
  expect(memhost.events).toEqual([]);
  fake.configured.add(alpha);
  await pumped(pump);
  fake.documents.set("plan", { body: "second", latestRevisionNumber: 2, title: "Plan" });
  await fake.pg.query("UPDATE issue_documents SET updated_at = clock_timestamp()");
  await pumped(pump);
  expect(memhost.texts(alpha)).toEqual(["text of plan", "second"]);
  expect(memhost.events[1]).toMatchObject({ replacesSource: true, source: { documentKey: "plan", issueId: issue } });
});

test("what is deleted is forgotten by its source", async () => {
  const id = await fake.comment(alpha, issue, "secret");
  const other = await fake.issue(alpha, "Short-lived");
  await fake.comment(alpha, other, "of the issue");
  const pump = await pumped();
  await fake.pg.query("UPDATE issue_comments SET deleted_at = now(), body = '' WHERE id = $1", [id]);
  await fake.pg.query("DELETE FROM issue_comments WHERE issue_id = $1", [other]);
  await fake.pg.query("DELETE FROM issues WHERE id = $1", [other]);
  await pumped(pump);
  const sources = memhost.forgotten.flatMap(({ company, sources: some }) => (company === alpha ? some : []));
  expect(sources).toContainEqual({ kind: "issue_comment", commentId: id });
  expect(sources).toContainEqual({ issueId: other });
  expect((await rows()).every(({ status }) => status === "forgotten")).toBe(true);
  const before = memhost.forgotten.length;
  await pumped(pump);
  expect(memhost.forgotten).toHaveLength(before);
});

test("a comment that became blank is forgotten", async () => {
  const id = await fake.comment(alpha, issue, "text");
  const pump = await pumped();
  await fake.pg.query("UPDATE issue_comments SET body = ' ', updated_at = clock_timestamp() WHERE id = $1", [id]);
  await pumped(pump);
  expect(memhost.forgotten.at(-1)?.sources).toEqual([{ kind: "issue_comment", commentId: id }]);
});

test("a deleted company is erased after its grace period and not before; one that comes back is kept", async () => {
  await fake.comment(alpha, issue, "kept for a day");
  const pump = await pumped();
  const gone = async (): Promise<void> => {
    await fake.pg.query("DELETE FROM companies WHERE id = $1", [alpha]);
    await pumped(pump);
  };
  await gone();
  await pumped(pump);
  expect(memhost.erased).toEqual([]);
  expect(memhost.forgotten).toEqual([]);
  await fake.company("Gamma");
  await fake.pg.query("INSERT INTO companies (id, name) VALUES ($1, 'Alpha')", [alpha]);
  await pumped(pump);
  settings = { ...settings, eraseGraceSeconds: 0 };
  expect((await ledger.company(alpha))?.gone_since).toBeNull();
  await gone();
  await pumped(pump);
  expect(memhost.erased).toEqual([alpha]);
  expect(await ledger.company(alpha)).toBeNull();
});

test("in a pilot only its agents and people are remembered; a wider pilot takes in the rest", async () => {
  const [ada, bob] = [await fake.agent(alpha, "Ada"), await fake.agent(alpha, "Bob")];
  for (const [agent, body] of [
    [ada, "of ada"],
    [bob, "of bob"],
  ])
    await fake.comment(alpha, issue, body ?? "", {
      author_type: "agent",
      author_agent_id: agent,
      author_user_id: null,
    });
  settings = { ...settings, agents: [ada] };
  const pump = await pumped();
  expect(memhost.texts(alpha)).toEqual(["of ada"]);
  settings = { ...settings, agents: [] };
  await ledger.widen(alpha);
  await pumped(pump);
  expect(memhost.texts(alpha)).toEqual(["of ada", "of bob"]);
});

test("a text over the limit is taken whole in linked parts", async () => {
  const text = `${"x".repeat(99)}\n`.repeat(11_000);
  await fake.comment(alpha, issue, text);
  await pumped();
  expect(memhost.events.length).toBe(2);
  expect(memhost.texts(alpha).join("")).toBe(text);
  expect(memhost.events.map(({ replacesSource }) => replacesSource)).toEqual(memhost.events.map(() => false));
  expect(memhost.events[1]?.metadata).toMatchObject({ part: 2, parts: memhost.events.length });
});

test("a large backlog goes in batches", async () => {
  await fake.pg.query(
    `INSERT INTO issue_comments (id, company_id, issue_id, body, author_type, created_at) SELECT gen_random_uuid(), $1, $2, 'comment ' || n, 'user', now() - (2000 - n) * interval '1 second' FROM generate_series(1, 1200) n`,
    [alpha, issue],
  );
  // Costs and budgets are looked at between two pages, not when the whole backlog is sent.
  const sent: number[] = [];
  const pump = new Pump({
    host: fake.host,
    memory,
    ledger,
    settings: () => settings,
    configured: () => [],
    meanwhile: async () => void sent.push(memhost.texts(alpha).length),
  });
  await pump.wake(true);
  expect(sent.some((count) => count > 0 && count < 1200)).toBe(true);
  expect(memhost.texts(alpha)).toEqual(Array.from({ length: 1200 }, (_, n) => `comment ${n + 1}`));
  expect(memhost.calls.filter(({ path }) => path.endsWith("/batch")).length).toBeLessThan(10);
});

test("the past of a company whose memory is metered waits for a person; what is new does not", async () => {
  memhost.bindings = [
    {
      key: "default",
      isDefault: true,
      providerKey: "acme",
      grants: { http: [{ host: "api.acme.test" }] },
      policy: { hooks: [] },
    },
  ];
  await fake.comment(alpha, issue, "old", { created_at: "2026-01-01T00:00:00Z" });
  const pump = await pumped();
  await fake.comment(alpha, issue, "new", { created_at: new Date(Date.now() + 1000).toISOString() });
  await pumped(pump);
  expect(memhost.texts(alpha)).toEqual(["new"]);
  await ledger.setCompany(alpha, { backfill_after: null });
  await pumped(pump);
  expect(memhost.texts(alpha)).toEqual(["new", "old"]);
});

test("a company that its budget paused in Paperclip spends nothing, and gets its own limit back", async () => {
  await pumped();
  memhost.budgets = [{ period: "day", limitCents: 300, warnShare: 0.5 }];
  const put = () =>
    memhost.calls
      .filter(({ method, path }) => method === "PUT" && path.endsWith("/budgets/day"))
      .map(({ company, body }) => [company, body.limitCents]);
  await fake.pg.query("UPDATE companies SET status = 'paused', pause_reason = 'budget' WHERE id = $1", [alpha]);
  await new Budgets(fake.host, memory, ledger).run();
  await new Budgets(fake.host, memory, ledger).run();
  expect(put()).toEqual([[alpha, 0]]);
  await fake.pg.query("UPDATE companies SET status = 'active', pause_reason = NULL");
  await new Budgets(fake.host, memory, ledger).run();
  expect(put()).toEqual([
    [alpha, 0],
    [alpha, 300],
  ]);
});

test("what an agent recalled is not remembered again from its comment; what a person writes stays as it is", async () => {
  const text = "<memhost-recall>\n- known\n</memhost-recall>mine";
  await fake.comment(alpha, issue, text, {
    author_type: "agent",
    author_agent_id: await fake.agent(alpha, "Ada"),
    author_user_id: null,
    created_at: "2026-01-01T00:00:00Z",
  });
  await fake.comment(alpha, issue, text);
  await pumped();
  expect(memhost.texts(alpha)).toEqual(["mine", text]);
});
