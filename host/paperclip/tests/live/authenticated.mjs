// Paperclip in the mode authenticated: people sign in, and the plugin needs a board API key for what its SDK cannot do.
// These steps are the last ones: from here on every call needs the key.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { Elsewhere, entries, TOKEN, vendor } from "./metered.mjs";
import { api, PACKAGE, until, URL_OF, useKey } from "./server.mjs";

/** A call with the session of a browser. */
export async function browser(method, route, body, cookie) {
  const answer = await fetch(`${URL_OF}/api${route}`, {
    method,
    headers: { "content-type": "application/json", origin: URL_OF, ...(cookie ? { cookie } : {}) },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${route}: ${answer.status} ${text}`);
  return {
    json: JSON.parse(text),
    cookie: answer.headers
      .getSetCookie()
      .map((one) => one.split(";")[0])
      .join("; "),
  };
}

async function comments_are_found_in_authenticated_mode_without_a_key(world) {
  const { server } = world;
  if ((await api("GET", "/plugins")).some(({ pluginKey }) => pluginKey === "memhost"))
    server.cli("plugin", "uninstall", "memhost");
  await server.kill("SIGTERM");
  const before = statSync(server.log).size;
  await server.start({
    PAPERCLIP_DEPLOYMENT_MODE: "authenticated",
    BETTER_AUTH_SECRET: "a-secret-of-this-test-only-0123456789",
    PAPERCLIP_PUBLIC_URL: URL_OF,
  });
  await assert.rejects(api("GET", "/companies"), /40[13]/);
  const { cookie } = await browser("POST", "/auth/sign-up/email", {
    name: "Ann",
    email: "ann@example.test",
    password: "correct horse battery",
  });
  const claims = await until("Paperclip says how the board is claimed", () =>
    /board-claim\/([0-9a-f]+)\?code=([0-9a-f]+)/.exec(readFileSync(server.log).subarray(before).toString()),
  );
  await browser("POST", `/board-claim/${claims[1]}/claim`, { code: claims[2] }, cookie);
  world.key = (await browser("POST", "/board-api-keys", { name: "memory" }, cookie)).json.token;
  useKey(world.key);
  server.cli("plugin", "install", PACKAGE);
  await world.up();
  const issue = await world.issue(world.alpha, "Behind the door");
  const text = "The doorman of Alpha is called Ignatius.";
  const start = Date.now();
  await world.comment(issue, text);
  await world.found(world.alpha, "Who is the doorman?", text);
  const took = Date.now() - start;
  assert.ok(took < 2000, `${took} ms`);
  useKey(null);
  await assert.rejects(world.search(world.alpha, "doorman"), /40[13]/);
  useKey(world.key);
  return `found after ${took} ms`;
}

async function enable_asks_for_a_board_key_and_works_with_one(world) {
  const { alpha } = world;
  await world.save(alpha, { paperclipUrl: URL_OF, boardToken: null });
  const without = (await world.action(alpha, "enable")).steps.filter(({ done }) => !done);
  assert.ok(
    without.some(({ says }) => says.includes("board API key")),
    JSON.stringify(without),
  );
  await world.save(alpha, { boardToken: await world.secret(alpha, world.key) });
  const { steps } = await world.action(alpha, "enable");
  for (const step of steps) assert.ok(step.done, `${step.step}: ${step.says}`);
  const issue = await world.issue(alpha, "Papers of the door");
  await api("PUT", `/issues/${issue}/documents/plan`, {
    title: "Plan",
    format: "markdown",
    body: "# Plan\nThe door is made of oak.",
  });
  await world.found(alpha, "What is the door made of?", "oak", 12_000);
  const undone = (await world.action(alpha, "disable")).steps;
  for (const step of undone) assert.ok(step.done, `${step.step}: ${step.says}`);
  const again = (await world.action(alpha, "enable")).steps;
  for (const step of again) assert.ok(step.done, `again, ${step.step}: ${step.says}`);
  return `without a key: ${without.map(({ step }) => step).join(", ")}`;
}

async function a_run_recalls_with_its_own_token(world) {
  const script =
    'curl -s -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" "$PAPERCLIP_API_URL/api/plugins/memhost/api/recall"';
  const agent = await world.hire(world.alpha, "Porter", script);
  await world.issue(world.alpha, "Who is the doorman?", { assigneeAgentId: agent, status: "todo" });
  const run = await until(
    "the run has ended",
    async () => {
      const [last] = await api("GET", `/companies/${world.alpha}/heartbeat-runs?limit=1&agentId=${agent}`);
      return last?.finishedAt ? api("GET", `/heartbeat-runs/${last.id}`) : null;
    },
    60_000,
  );
  assert.match(String(run.resultJson?.stdout), /Ignatius/);
}

async function the_explorer_opens_for_an_owner(world) {
  const { url } = await world.action(world.alpha, "explorer");
  const opened = await fetch(url, { redirect: "manual" });
  assert.deepEqual([opened.status, opened.headers.get("location")], [303, `/c/${world.alpha}`]);
  const cookie = opened.headers
    .getSetCookie()
    .map((one) => one.split(";")[0])
    .join("; ");
  assert.equal((await fetch(new URL(`/c/${world.alpha}`, url), { headers: { cookie } })).status, 200);
  assert.equal(
    (await fetch(new URL(`/c/${world.beta}`, url), { headers: { cookie } })).status,
    403,
    "this company only",
  );
  assert.equal((await fetch(url, { redirect: "manual" })).status, 401, "once");
}

async function costs_reach_paperclip_with_the_key(world) {
  const charges = await vendor();
  const elsewhere = new Elsewhere(world, charges.url);
  await elsewhere.start();
  const company = (await api("POST", "/companies", { name: "Zeta" })).id;
  await world.save(company, {
    paperclipUrl: URL_OF,
    boardToken: await world.secret(company, world.key),
    memhostUrl: elsewhere.url,
    memhostToken: await world.secret(company, TOKEN),
  });
  await until(
    "the company has its binding",
    async () => (await elsewhere.ask("GET", `/control/v1/companies/${company}/bindings`)).items.length > 0,
    20_000,
  );
  await elsewhere.grant(company);
  const agent = await world.hire(company, "Zoe", 'echo "The harp of Zeta has 47 strings."');
  await world.issue(company, "Count the strings", { assigneeAgentId: agent, status: "todo" });
  await world.found(company, "How many strings has the harp?", "47 strings", 60_000);
  const made = await until(
    "both forms are there",
    async () => {
      // A question costs nothing until the records have vectors, which are made after the capture.
      await world.search(company, "How many strings has the harp?");
      const all = await entries(world, company);
      return all.cost.length > 0 && all.finance.length > 0 ? all : null;
    },
    60_000,
    1000,
  );
  assert.ok(made.cost.every(({ agent_id: id }) => id === agent));
  await world.save(company, { memhostUrl: null, memhostToken: null });
  await until("our own memhost is back", () => world.memhosts().length === 1, 12_000);
  await elsewhere.stop();
  charges.stop();
  return `${made.cost.length} cost events, ${made.finance.length} finance events`;
}

export const STEPS = [
  comments_are_found_in_authenticated_mode_without_a_key,
  enable_asks_for_a_board_key_and_works_with_one,
  a_run_recalls_with_its_own_token,
  the_explorer_opens_for_an_owner,
  costs_reach_paperclip_with_the_key,
];
