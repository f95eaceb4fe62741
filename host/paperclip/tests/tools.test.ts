import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ToolResult, ToolRunContext } from "@paperclipai/plugin-sdk";
import { settingsOf, type Settings } from "../src/config";
import { disable, enable, type Enabling } from "../src/enable";
import { Ledger } from "../src/ledger";
import manifest from "../src/manifest";
import { Memory } from "../src/memory";
import { BoardError, type Board } from "../src/paperclip/board";
import { registerPages } from "../src/pages";
import type { MemhostPlugin } from "../src/plugin";
import { Recalls } from "../src/recall";
import { registerTools } from "../src/tools";
import { FakeHost } from "./fakes/host";
import { FakeMemhost } from "./fakes/memhost";

let fake: FakeHost;
let memhost: FakeMemhost;
let memory: Memory;
let ledger: Ledger;
let settings: Settings;
let recalls: Recalls;
let company: string;
let agent: string;
let issue: string;
let run: ToolRunContext;
const tools = new Map<string, (given: unknown, run: ToolRunContext) => Promise<ToolResult>>();
const call = (name: string, given: unknown, context: ToolRunContext = run): Promise<ToolResult> =>
  tools.get(name)?.(given, context) ?? Promise.reject(new Error(name));

beforeEach(async () => {
  [fake, memhost] = await Promise.all([FakeHost.make(), new FakeMemhost().start()]);
  memory = new Memory();
  memory.up(memhost.address);
  ledger = new Ledger(fake.host);
  await ledger.use("store-1", null);
  settings = settingsOf(null);
  company = await fake.company("Alpha");
  agent = await fake.agent(company, "Ada");
  issue = await fake.issue(company, "Harbour", {
    project_id: "00000000-0000-4000-8000-000000000001",
    identifier: "ALP-1",
  });
  const runId = await fake.run(company, agent, {
    status: "running",
    finished_at: null,
    context_snapshot: { issueId: issue },
  });
  run = { agentId: agent, runId, companyId: company, projectId: "00000000-0000-4000-8000-000000000009" };
  recalls = new Recalls(fake.host, memory, ledger, () => settings);
  registerTools(
    {
      register: (name: string, _: unknown, handler: (given: unknown, context: ToolRunContext) => Promise<ToolResult>) =>
        void tools.set(name, handler),
    },
    { host: fake.host, memory, recalls, settings: () => settings, onWrite: async () => {} },
  );
});
afterEach(() => memhost.stop());

const last = (end: string) => memhost.calls.filter(({ path }) => path.endsWith(end)).at(-1);

test("every declared tool is there, with a capability, and the manifest sets no least version", () => {
  expect([...tools.keys()]).toEqual(manifest.tools?.map(({ name }) => name));
  expect(manifest.capabilities).toContain("agent.tools.register");
  expect(manifest.minimumHostVersion).toBeUndefined();
});

test("the scope is the run's, whatever the arguments say", async () => {
  await call("memory.search", { query: "x", companyId: "other", agentId: "other", scope: { companyId: "other" } });
  expect(last("/query")).toMatchObject({
    company,
    body: {
      scope: {
        companyId: company,
        agentId: agent,
        runId: run.runId,
        issueId: issue,
        projectId: "00000000-0000-4000-8000-000000000001",
      },
    },
  });
});

test("another agent's run is refused", async () => {
  const other = await fake.agent(company, "Bob");
  expect(await call("memory.search", { query: "x" }, { ...run, agentId: other })).toEqual({
    error: "this run is another agent's",
  });
  expect(last("/query")).toBeUndefined();
});

test("every search answers its own query", async () => {
  const first = await call("memory.search", { query: "ships" });
  const second = await call("memory.search", { query: "bread" });
  expect(first.content).toContain("about ships");
  expect(second.content).toContain("about bread");
  expect(second.content).not.toContain("ships");
});

test("a note repeated in a run has one key; another text has another", async () => {
  for (const text of ["a", "a", "b"]) await call("memory.note", { text });
  const keys = memhost.calls
    .filter(({ path }) => path.endsWith("/records"))
    .map(({ headers }) => headers["idempotency-key"]);
  expect(keys[0]).toBe(keys[1]);
  expect(keys[2]).not.toBe(keys[0]);
});

test("an agent outside of the pilot gets nothing, with the reason", async () => {
  settings = { ...settings, agents: ["00000000-0000-4000-8000-00000000000f"] };
  expect((await call("memory.note", { text: "x" })).error).toContain("not in the pilot");
  expect(
    await recalls.hydrate({
      companyId: company,
      agentId: agent,
      runId: null,
      issueId: null,
      projectId: null,
      query: "x",
      way: "route",
    }),
  ).toMatchObject({ text: "", skipped: "this agent is not in the pilot" });
});

test("recall that was skipped says why and is in the list without its text", async () => {
  memory.down("memhost is starting");
  expect(
    (
      await recalls.search(
        { companyId: company, agentId: agent, runId: null, issueId: issue, projectId: null, query: "x", way: "tool" },
        5,
      )
    ).skipped,
  ).toContain("memhost is starting");
  const [row] = await recalls.of(company, issue);
  expect(row).toMatchObject({ skipped: expect.stringContaining("memhost is starting"), found: 0 });
});

test("whether it helped is kept for the recall of this company only", async () => {
  const { id } = await recalls.search(
    { companyId: company, agentId: agent, runId: null, issueId: null, projectId: null, query: "x", way: "page" },
    5,
  );
  const other = await fake.company("Beta");
  expect(await recalls.mark(other, id, "eve", true)).toBe(false);
  expect(await recalls.mark(company, id, "local-board", false)).toBe(true);
  expect((await recalls.of(company, null))[0]?.marks).toEqual({ "local-board": false });
});

function board(refuse: (path: string) => BoardError | null = () => null): { asked: string[]; board: Board } {
  const asked: string[] = [];
  const ask = async (method: string, path: string): Promise<unknown> => {
    const refusal = refuse(`${method} ${path}`);
    if (refusal !== null) throw refusal;
    if (method !== "GET") asked.push(`${method} ${path.replace(/[0-9a-f-]{36}/g, "ID")}`);
    if (path.endsWith("/apps/connect")) return { connectionId: "c1", application: { id: "a1" } };
    if (path.endsWith("/profiles")) return method === "GET" ? [] : { id: "p1" };
    return null;
  };
  return { asked, board: { url: "http://paperclip", ask } as unknown as Board };
}
const enabling = (to: Board): Enabling => ({
  host: fake.host,
  memory,
  ledger,
  board: to,
  companyId: company,
  settings,
});

test("Enable says what it did, can be repeated, and can be undone", async () => {
  const { asked, board: to } = board();
  expect((await enable(enabling(to))).filter(({ done }) => !done)).toEqual([]);
  expect(asked).toContain("POST /plugins/memhost/config");
  expect(asked).toContain("POST /agents/ID/skills/sync");
  const patched = memhost.calls.find(({ method }) => method === "PATCH");
  expect(patched?.body).toMatchObject({
    policy: {
      hooks: expect.arrayContaining([
        { kind: "issue_comment_capture", when: "active" },
        { kind: "post_run_capture", when: "active" },
      ]),
    },
  });
  const made = (await ledger.company(company))?.enabled;
  const before = asked.length;
  await enable(enabling(to));
  expect(asked.slice(before).filter((path) => path.includes("apps/connect") || path.includes("skills/sync"))).toEqual(
    [],
  );
  expect((await ledger.company(company))?.enabled).toEqual(made);
  expect((await disable(enabling(to))).filter(({ done }) => !done)).toEqual([]);
  expect(asked).toEqual(
    expect.arrayContaining([
      "DELETE /tool-connections/c1",
      "DELETE /tool-profiles/p1",
      "POST /companies/ID/tools/profiles/p1/unbind",
    ]),
  );
  expect((await ledger.company(company))?.enabled).toBeNull();
});

test("a step that Paperclip refuses is told, and the others are done", async () => {
  const { board: to } = board((path) =>
    path.includes("/tools/profiles") ? new BoardError(403, "Paperclip asks for a board API key") : null,
  );
  const steps = await enable(enabling(to));
  expect(steps.filter(({ done }) => !done)).toEqual([
    { step: "tools", done: false, says: "Paperclip asks for a board API key" },
  ]);
});

test("recalls are kept for three months", async () => {
  for (const query of ["old", "new"])
    await recalls.search(
      { companyId: company, agentId: agent, runId: null, issueId: null, projectId: null, query, way: "page" },
      5,
    );
  await fake.pg.query(
    `UPDATE ${ledger.namespace}.recalls SET at = now() - interval '91 days' WHERE id = (SELECT min(id) FROM ${ledger.namespace}.recalls)`,
  );
  await recalls.prune();
  expect(await recalls.of(company, null)).toHaveLength(1);
});

type Action = (
  params: Record<string, unknown>,
  context: { actor: Record<string, unknown>; companyId: string | null },
) => Promise<unknown>;
const linked: string[] = [];
function pages(): Map<string, Action> {
  const actions = new Map<string, Action>();
  const ctx = {
    ...fake.host,
    data: { register: () => {} },
    actions: { register: (key: string, act: Action) => void actions.set(key, act) },
  };
  registerPages({
    ctx,
    memory,
    ledger,
    recalls,
    settings: () => settings,
    wrote: async () => {},
    linkBack: async (origin: string) => void linked.push(origin),
  } as unknown as MemhostPlugin);
  return actions;
}

test("agents cannot use what the pages use", async () => {
  const actions = pages();
  expect(actions.size).toBeGreaterThan(8);
  for (const act of actions.values())
    await expect(
      act(
        { companyId: company, query: "x", id: "a/b" },
        { actor: { type: "agent", agentId: agent }, companyId: company },
      ),
    ).rejects.toThrow("only people");
});

test("a person's search sees the company's memory and this person's own", async () => {
  await pages().get("search")?.(
    { companyId: company, query: "x", subjectId: "somebody-else" },
    { actor: { type: "user", userId: "ann" }, companyId: company },
  );
  expect(last("/query")?.body.scope).toMatchObject({ companyId: company, subjectId: "ann", agentId: null });
});

test("a person's note is for everybody, for this person or for one agent of the company", async () => {
  const note = (who: string, userId: string | null = "ann") =>
    pages().get("note")?.(
      { companyId: company, text: "x", who },
      { actor: { type: "user", userId }, companyId: company },
    );
  const kept = () => {
    const { scope, visibility } = last("/records")?.body as { scope: Record<string, unknown>; visibility: string };
    return [visibility, scope.agentId, scope.subjectId];
  };
  await note("company");
  expect(kept()).toEqual(["company", null, null]);
  await note("me");
  expect(kept()).toEqual(["person", null, "ann"]);
  await note(agent);
  expect(kept()).toEqual(["agent", agent, null]);
  const before = memhost.calls.length;
  const foreign = await fake.agent(await fake.company("Beta"), "Bob");
  for (const [who, userId] of [
    [foreign, "ann"],
    ["everyone", "ann"],
    ["me", null],
  ] as const)
    await expect(note(who, userId)).rejects.toThrow();
  expect(memhost.calls.slice(before).filter(({ path }) => path.endsWith("/records"))).toEqual([]);
});

test("the explorer opens for owners and administrators, with a token of their company, and links back to this address", async () => {
  let members: Record<string, unknown>[] = [];
  const paperclip = createServer((_, response) => response.end(JSON.stringify({ members })));
  await new Promise<void>((resolve) => paperclip.listen(0, "127.0.0.1", resolve));
  settings = settingsOf({ paperclipUrl: `http://127.0.0.1:${(paperclip.address() as AddressInfo).port}` });
  const open = (userId: string, origin = "http://paperclip.test:3100/ALP/memory") =>
    pages().get("explorer")?.(
      { companyId: company, origin },
      { actor: { type: "user", userId }, companyId: company },
    ) as Promise<{ url: string }>;
  const member = (membershipRole: string, status = "active") => [
    { principalType: "user", principalId: "ann", membershipRole, status },
  ];
  for (const wrong of [[], member("viewer"), member("operator"), member("owner", "suspended")]) {
    members = wrong;
    await expect(open("ann")).rejects.toThrow("only owners and administrators");
  }
  expect(last("/tokens")).toBeUndefined();
  members = member("admin");
  for (const who of ["ann", "local-board"]) {
    const { url } = await open(who);
    expect(url).toBe(`${memhost.address.control}/sign-in?link=once&next=${encodeURIComponent(`/c/${company}`)}`);
    expect(last("/tokens")?.body).toMatchObject({ role: "company_administrator", expiresAt: expect.any(String) });
    expect(last("/sign-in/link")).toMatchObject({
      body: { token: "mh_integration" },
      headers: { authorization: "Bearer mh_test" },
    });
    expect(linked.at(-1)).toBe("http://paperclip.test:3100");
  }
  await expect(open("ann", "javascript:alert(1)")).rejects.toThrow("not usable");
  paperclip.close();
});

test("Enable takes no address that is none", async () => {
  const enables = pages().get("enable")?.(
    { companyId: company, paperclipUrl: "file:///etc/passwd" },
    { actor: { type: "user", userId: "ann" }, companyId: company },
  );
  await expect(enables).rejects.toThrow("http:// or https://");
});
