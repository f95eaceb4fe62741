// A memhost that runs elsewhere and asks somebody who charges: what it costs is in Paperclip once, whatever ends in
// between, and Paperclip's budget stops it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { createInterface } from "node:readline";
import { withPostgres } from "./edges.mjs";
import { api, MEMHOST, sleep, until, URL_OF } from "./server.mjs";

export const TOKEN = "the-operator-token-of-a-memhost-elsewhere";
const DIMENSIONS = 8;

const read = async (request) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
};
const listening = (server) =>
  new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address().port)));

/** Vectors for a price: a word is a token, and a token is seven tenths of a cent. */
export async function vendor() {
  const made = { requests: 0 };
  const server = http.createServer(async (request, response) => {
    const { input, model } = JSON.parse((await read(request)).toString());
    const texts = [input].flat();
    made.requests += 1;
    const tokens = texts.join(" ").split(/\s+/).length;
    const data = texts.map((text, index) => ({
      object: "embedding",
      index,
      embedding: [...createHash("sha256").update(text).digest().subarray(0, DIMENSIONS)].map((byte) => byte / 128 - 1),
    }));
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ object: "list", model, data, usage: { prompt_tokens: tokens, total_tokens: tokens } }));
  });
  made.url = `http://127.0.0.1:${await listening(server)}/v1`;
  made.stop = () => server.close();
  return made;
}

export class Elsewhere {
  port = 0;

  constructor(world, url) {
    this.directory = path.join(world.server.directory, "elsewhere");
    rmSync(this.directory, { recursive: true, force: true });
    mkdirSync(this.directory, { recursive: true });
    writeFileSync(
      path.join(this.directory, "memhost.toml"),
      `[embeddings.endpoint]\nurl = "${url}"\nmodel = "vendor-1"\ndimensions = ${DIMENSIONS}\ncents_per_million_tokens = 700000\n`,
    );
  }

  async start() {
    const flags = [
      "--config",
      path.join(this.directory, "memhost.toml"),
      "--data-dir",
      path.join(this.directory, "data"),
      "--listen",
      `127.0.0.1:${this.port}`,
      "--print-address",
      "json",
    ];
    this.child = spawn(path.join(MEMHOST, "memhost"), ["serve", ...flags], {
      stdio: ["ignore", "pipe", "ignore"],
      env: { PATH: process.env.PATH, HOME: this.directory, MEMHOST_OPERATOR_TOKEN: TOKEN },
    });
    // Nothing is left of a step that failed.
    const { child } = this;
    process.once("exit", () => child.kill("SIGKILL"));
    const [line] = await new Promise((resolve) =>
      createInterface(this.child.stdout).once("line", (...all) => resolve(all)),
    );
    this.url = JSON.parse(line).runtime;
    this.port = Number(new URL(this.url).port);
  }

  async stop(signal = "SIGTERM") {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill(signal);
    await ended;
  }

  async ask(method, route, body) {
    const answer = await fetch(`${this.url}${route}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${route}: ${answer.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  /** Lets the company's records be found by meaning, which costs something. */
  async grant(company) {
    const { grants } = await this.ask("GET", `/control/v1/companies/${company}/bindings/default`);
    await this.ask("PUT", `/control/v1/companies/${company}/bindings/default/grants`, { ...grants, embeddings: true });
  }
}

async function a_memhost_elsewhere_is_used_and_caught_up_with(world) {
  const charges = await vendor();
  const elsewhere = new Elsewhere(world, charges.url);
  await elsewhere.start();
  const company = (await api("POST", "/companies", { name: "Epsilon" })).id;
  const issue = await world.issue(company, "The tower");
  world.metered = { charges, elsewhere, company, issue };
  await world.save(company, { memhostUrl: elsewhere.url, memhostToken: await world.secret(company, TOKEN) });
  await until("our own memhost has ended", () => world.memhosts().length === 0, 12_000);
  const text = "The tower of Epsilon leans to the west.";
  await world.comment(issue, text);
  await world.found(company, "tower", text, 15_000);
  const { snippets } = await elsewhere.ask("POST", `/runtime/v1/companies/${company}/query`, {
    scope: { companyId: company },
    query: "tower",
    topK: 5,
  });
  assert.ok(
    snippets.some((snippet) => snippet.text === text),
    "it is at the memhost elsewhere",
  );
  await elsewhere.stop("SIGKILL");
  const later = "The tower of Epsilon has 200 steps.";
  await world.comment(issue, later);
  const said = await until(
    "the plugin says what is wrong",
    async () => {
      const { status, message } = await world.status(company);
      return status === "degraded" && message.includes("does not answer") ? message : null;
    },
    15_000,
  );
  await elsewhere.start();
  await world.found(company, "steps of the tower", later, 40_000);
  return said;
}

/** Between the plugin and Paperclip: kills the worker before or after Paperclip has taken an entry. */
async function killer(world) {
  const deeds = { "cost-events": ["after", "before"], "finance-events": ["after", "before"] };
  const done = [];
  const server = http.createServer(async (request, response) => {
    const body = await read(request);
    const form = request.method === "POST" ? request.url.split("/").at(-1) : "";
    const deed = deeds[form]?.shift();
    const kill = async () => {
      done.push(`${form} ${deed}`);
      const pids = world.workers();
      for (const pid of pids) process.kill(pid, "SIGKILL");
      await until("the worker has ended", () => pids.every((pid) => !world.workers().includes(pid)));
      request.socket.destroy();
    };
    if (deed === "before") return kill();
    const answer = await fetch(`${URL_OF}${request.url}`, {
      method: request.method,
      headers: { "content-type": request.headers["content-type"] ?? "application/json" },
      body: request.method === "GET" ? undefined : body,
    });
    const text = await answer.text();
    if (deed === "after") return kill();
    response.writeHead(answer.status, { "content-type": "application/json" }).end(text);
  });
  return { url: `http://127.0.0.1:${await listening(server)}`, done, stop: () => server.close() };
}

export async function entries(world, company) {
  return withPostgres(world, async (sql) => ({
    cost: await sql`SELECT billing_code, cost_cents AS cents, agent_id, issue_id, heartbeat_run_id, model FROM cost_events WHERE company_id = ${company}::uuid AND billing_code LIKE 'memhost:%'`,
    finance:
      await sql`SELECT billing_code, amount_cents AS cents, event_kind FROM finance_events WHERE company_id = ${company}::uuid AND billing_code LIKE 'memhost:%'`,
  }));
}

async function costs_are_in_paperclip_once_whatever_is_killed(world) {
  const { elsewhere, company, issue } = world.metered;
  await elsewhere.grant(company);
  const between = await killer(world);
  await world.save(company, { paperclipUrl: between.url });
  const agent = await world.hire(company, "Stella", 'echo "The bell of Epsilon weighs four tons."');
  const task = await world.issue(company, "Weigh the bell", { assigneeAgentId: agent, status: "todo" });
  for (let n = 0; n < 3; n += 1) await world.comment(issue, `Visitor number ${n} of the tower wore a hat.`);
  await world.found(company, "Who wore a hat?", "hat", 20_000);
  const run = await world.found(company, "What does the bell weigh?", "four tons", 60_000);
  const other = await world.hire(company, "Luna", 'echo "The clock of Epsilon is five minutes late."');
  await world.issue(company, "Set the clock", { assigneeAgentId: other, status: "todo" });
  await elsewhere.ask("POST", `/control/v1/companies/${company}/finance-events`, {
    eventKind: "platform_fee",
    biller: "vendor",
    amountCents: 1900,
    occurredAt: new Date().toISOString(),
    description: "Subscription",
  });
  await until("the worker was killed four times", () => between.done.length === 4, 120_000);
  // Nothing that costs is asked from here on.
  const known = async () => {
    const events = [];
    for (let cursor; ; ) {
      const page = await elsewhere.ask(
        "GET",
        `/control/v1/companies/${company}/cost-events?order=oldest&limit=200${cursor ? `&cursor=${cursor}` : ""}`,
      );
      events.push(...page.items);
      cursor = page.nextCursor;
      if (!page.more) return events;
    }
  };
  const { cost, finance, events } = await until(
    "all is entered",
    async () => {
      const made = { ...(await entries(world, company)), events: await known() };
      return made.cost.length + made.finance.length >= made.events.length + 1 ? made : null;
    },
    120_000,
  );
  await sleep(15_000);
  const after = await entries(world, company);
  assert.deepEqual(
    [after.cost.length, after.finance.length],
    [cost.length, finance.length],
    "nothing is entered again",
  );
  const codes = [...cost, ...finance].map(({ billing_code: code }) => code).sort();
  const charges = (await elsewhere.ask("GET", `/control/v1/companies/${company}/finance-events`)).items;
  assert.deepEqual(codes, [...events, ...charges].map(({ id }) => `memhost:${id}`).sort(), "each is there, and once");
  const sum = (rows, of) => rows.reduce((all, row) => all + of(row), 0);
  const whole = (some) => Math.floor(sum(some, ({ costCents }) => costCents) + 1e-6);
  // Remainders are carried to the next entry of the same account.
  const of = (id) => whole(events.filter(({ agentId }) => agentId === id));
  for (const id of [agent, other])
    assert.equal(
      sum(
        cost.filter((row) => row.agent_id === id),
        ({ cents }) => Number(cents),
      ),
      of(id),
      "no cent is lost",
    );
  assert.equal(
    sum(finance, ({ cents }) => Number(cents)),
    1900 + whole(events.filter(({ agentId }) => agentId !== agent && agentId !== other)),
  );
  const ofRun = cost.find(({ heartbeat_run_id: id }) => id === run.source.runId);
  assert.deepEqual([ofRun?.agent_id, ofRun?.issue_id, ofRun?.model], [agent, task, "vendor-1"]);
  await world.save(company, { paperclipUrl: URL_OF });
  between.stop();
  world.metered.agent = agent;
  return `${cost.length} cost events and ${finance.length} finance events; ${between.done.join(", ")}`;
}

async function a_spent_budget_of_paperclip_stops_what_is_metered(world) {
  const { elsewhere, charges, company, issue } = world.metered;
  const company_of = async () => (await api("GET", "/companies")).find(({ id }) => id === company);
  await api("PATCH", `/companies/${company}/budgets`, { budgetMonthlyCents: 1 });
  await until("Paperclip has paused the company", async () => (await company_of()).status === "paused");
  const limits = async () => (await elsewhere.ask("GET", `/control/v1/companies/${company}/budgets`)).items;
  await until("memhost has no budget", async () => (await limits()).some(({ limitCents }) => limitCents === 0), 30_000);
  const asked = charges.requests;
  const text = "The ravens left the tower on Sunday.";
  await world.comment(issue, text);
  await until(
    "it was handed over",
    async () =>
      (await world.status(company)).counts.some(
        ({ kind, status, n }) => kind === "comment" && status === "sent" && n >= 6,
      ),
    15_000,
  );
  const refused = await api("GET", `/plugins/memhost/api/search?companyId=${company}&query=ravens`);
  assert.match(refused.skipped, /budget/);
  await sleep(3000);
  assert.equal(charges.requests, asked, "nobody who charges was asked");
  await api("PATCH", `/companies/${company}/budgets`, { budgetMonthlyCents: 1_000_000 });
  await until("the company goes on", async () => (await company_of()).status === "active");
  await world.found(company, "What did the ravens do?", text, 40_000);
  assert.deepEqual(await limits(), [], "memhost's own limit is what it was");
  assert.ok(charges.requests > asked);
  return refused.skipped;
}

async function without_the_memhost_elsewhere_our_own_is_back(world) {
  const { elsewhere, charges, company } = world.metered;
  await world.save(company, { memhostUrl: null, memhostToken: null });
  await until("our own memhost is back", () => world.memhosts().length === 1, 12_000);
  await world.up();
  await elsewhere.stop();
  charges.stop();
  const text = "Epsilon keeps bees.";
  await world.comment(await world.issue(world.alpha, "Bees"), text);
  await world.found(world.alpha, "bees", text, 10_000);
}

export const STEPS = [
  a_memhost_elsewhere_is_used_and_caught_up_with,
  costs_are_in_paperclip_once_whatever_is_killed,
  a_spent_budget_of_paperclip_stops_what_is_metered,
  without_the_memhost_elsewhere_our_own_is_back,
];
