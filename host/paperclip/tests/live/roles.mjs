// Who may do what, every cell of the table in src/access.ts, asked of a real Paperclip in the mode authenticated.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import path from "node:path";
import { build } from "esbuild";
import { browser } from "./authenticated.mjs";
import { api, PACKAGE, until, URL_OF } from "./server.mjs";

const PASSWORD = "correct horse battery";

/** The table itself: the plugin's own file. */
async function table() {
  const { outputFiles } = await build({
    entryPoints: [path.join(PACKAGE, "src/access.ts")],
    bundle: true,
    format: "esm",
    platform: "node",
    write: false,
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

/** Somebody with this role in the company, and the session of their browser. */
async function member(company, name, role) {
  const email = `${name}@example.test`.toLowerCase();
  // Paperclip takes a few people a minute.
  const { cookie } = await until(
    `${name} has signed up`,
    () => browser("POST", "/auth/sign-up/email", { name, email, password: PASSWORD }),
    120_000,
    3000,
  );
  const { token } = await api("POST", `/companies/${company}/invites`, { allowedJoinTypes: "human", humanRole: role });
  const { json: joined } = await browser("POST", `/invites/${token}/accept`, { requestType: "human" }, cookie);
  if (joined.status === "pending_approval")
    await api("POST", `/companies/${company}/join-requests/${joined.id}/approve`, {});
  const { members } = await api("GET", `/companies/${company}/members`);
  const own = members.find(({ user, principalId }) => user?.email === email || principalId === joined.requestingUserId);
  assert.ok(own, `${name} is a member`);
  if (own.membershipRole !== role)
    await api("PATCH", `/companies/${company}/members/${own.id}`, { membershipRole: role });
  return cookie;
}

async function ask(method, route, cookie, body) {
  const answer = await fetch(`${URL_OF}/api${route}`, {
    method,
    headers: { "content-type": "application/json", origin: URL_OF, cookie },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, text };
}

const isDenied = ({ status, text }) =>
  status === 401 || status === 403 || /only .*of this company may do this/.test(text);

async function every_action_and_route_is_for_its_roles(world) {
  const { ACTIONS, ROUTES, ROLES } = await table();
  const { alpha, beta } = world;
  const issue = await world.issue(alpha, "Who may do what");
  const people = [];
  for (const role of ROLES) people.push([role, alpha, await member(alpha, `Alpha-${role}`, role)]);
  for (const role of ROLES) people.push([role, beta, await member(beta, `Beta-${role}`, role)]);
  const given = {
    search: { query: "harbour" },
    issue: { issueId: issue },
    note: { text: "who may do what", who: "company" },
    correct: { id: "local-markdown/nothing", text: "x" },
    forget: { id: "local-markdown/nothing" },
    mark: { recallId: "00000000-0000-4000-8000-000000000000", helpful: true },
    // What the worker must not believe.
    enable: { paperclipUrl: "http://127.0.0.1:1" },
  };
  const wrong = [];
  let cells = 0;
  for (const [role, company, cookie] of people) {
    const isOwn = company === alpha;
    for (const [key, roles] of Object.entries(ACTIONS)) {
      const answer = await ask("POST", "/plugins/memhost/bridge/action", cookie, {
        key,
        companyId: alpha,
        params: given[key] ?? {},
      });
      // Paperclip lets a viewer send no action.
      const may = isOwn && roles.includes(role) && role !== "viewer";
      cells += 1;
      if (isDenied(answer) === may)
        wrong.push(`${key} by ${role} of ${isOwn ? "the company" : "another"}: ${answer.status} ${answer.text}`);
      // Without a company Paperclip checks nothing but the administrator of the instance.
      const without = await ask("POST", "/plugins/memhost/bridge/action", cookie, {
        key,
        params: { companyId: alpha },
      });
      cells += 1;
      if (!isDenied(without)) wrong.push(`${key} by ${role} without a company: ${without.status} ${without.text}`);
    }
    for (const [key, { roles }] of Object.entries(ROUTES)) {
      const route = key === "issue" ? `issues/${issue}/recall` : key;
      const answer = await ask("GET", `/plugins/memhost/api/${route}?companyId=${alpha}&query=harbour`, cookie);
      cells += 1;
      if (isDenied(answer) === (isOwn && roles.includes(role)))
        wrong.push(`route ${key} by ${role} of ${isOwn ? "the company" : "another"}: ${answer.status} ${answer.text}`);
    }
    const saved = await ask("POST", "/plugins/memhost/config", cookie, { companyId: alpha, configJson: {} });
    cells += 1;
    if (saved.status !== 403) wrong.push(`settings by ${role}: ${saved.status} ${saved.text}`);
  }
  // An action that no row has.
  for (const [, , cookie] of people.slice(0, 1))
    for (const key of ["leftover", "linkBack", "toString"]) {
      const answer = await ask("POST", "/plugins/memhost/bridge/action", cookie, { key, companyId: alpha, params: {} });
      cells += 1;
      if (answer.status < 400) wrong.push(`${key} is an action without a row`);
    }
  assert.deepEqual(wrong, []);
  return `${cells} cells`;
}

async function nothing_leaves_for_an_address_that_a_member_names(world) {
  const seen = [];
  const listener = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    response.end("{}");
  });
  await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${listener.address().port}`;
  for (const key of ["enable", "disable", "explorer"])
    await world.action(world.alpha, key, { paperclipUrl: url, origin: url, url, memhostUrl: url }).catch(() => null);
  await world.action(world.alpha, "enable");
  listener.close();
  assert.deepEqual(seen, []);
}

export const STEPS = [every_action_and_route_is_for_its_roles, nothing_leaves_for_an_address_that_a_member_names];
