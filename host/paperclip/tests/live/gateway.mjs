// A stand-in for Claude: an agent that speaks MCP with Paperclip's gateway, as Paperclip configures it for a run.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import path from "node:path";
import { Elsewhere, TOKEN } from "./metered.mjs";
import { api, MEMHOST, sleep, until, URL_OF } from "./server.mjs";

const action = async (company, key, params = {}) =>
  (await api("POST", "/plugins/memhost/bridge/action", { key, companyId: company, params })).data;

const NOTE = "Told through the gateway: the anchor weighs 3 tons.";

/** Lets a new agent note something through the gateway. Answers its run, its issue, and what it printed. */
async function noted(world, company, project) {
  const headers = `-H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" -H 'content-type: application/json'`;
  const script = [
    `S=$(curl -s -X POST ${headers} "$PAPERCLIP_API_URL/api/tool-gateway/sessions" -d '{"agentId":"'$PAPERCLIP_AGENT_ID'","runId":"'$PAPERCLIP_RUN_ID'","companyId":"'$PAPERCLIP_COMPANY_ID'","issueId":"'$PAPERCLIP_TASK_ID'","projectId":"${project}"}')`,
    `echo "session: $S"`,
    `T=$(echo "$S" | sed -n 's/.*"token":"\\([^"]*\\)".*/\\1/p')`,
    `echo "tools: $(curl -s ${headers} -H "x-paperclip-tool-gateway-token: $T" "$PAPERCLIP_API_URL/api/tool-gateway/tools")"`,
    `N=$(curl -s ${headers} -H "x-paperclip-tool-gateway-token: $T" "$PAPERCLIP_API_URL/api/tool-gateway/tools" | tr ',{' '\\n\\n' | sed -n 's/.*"name":"\\([^"]*memory-note\\)".*/\\1/p' | head -1)`,
    `echo "name: $N"`,
    `curl -s -X POST ${headers} -H "x-paperclip-tool-gateway-token: $T" "$PAPERCLIP_API_URL/api/tool-gateway/tools/call" -d '{"tool":"'"$N"'","parameters":{"text":"${NOTE}"}}'`,
  ].join("\n");
  const agent = await world.hire(company, "Claude", script);
  const issue = await world.issue(company, "Speak MCP", {
    assigneeAgentId: agent,
    status: "todo",
    projectId: project,
  });
  const run = await until(
    "the run has ended",
    async () => {
      const [last] = await api("GET", `/companies/${company}/heartbeat-runs?limit=1&agentId=${agent}`);
      return last?.finishedAt ? api("GET", `/heartbeat-runs/${last.id}`) : null;
    },
    60_000,
  );
  const output = String(run.resultJson?.stdout ?? run.stdoutExcerpt);
  // Claude and Codex put the gateway's name in front, and take 64 characters.
  const name = /^name: (.*)$/m.exec(output)?.[1] ?? "";
  assert.ok(name !== "" && `mcp__paperclip__${name}`.length <= 64, `${name}: ${output}`);
  return { run, issue, output, name };
}

async function an_agent_reaches_memory_through_the_gateway(world) {
  await world.save(world.alpha, { paperclipUrl: URL_OF });
  const { steps } = await action(world.alpha, "enable");
  assert.ok(
    steps.every(({ done }) => done),
    JSON.stringify(steps),
  );
  await sleep(300);
  const project = (await api("POST", `/companies/${world.alpha}/projects`, { name: "Gateway" })).id;
  const { run, issue, output, name } = await noted(world, world.alpha, project);
  const note = (await world.search(world.alpha, "What does the anchor weigh?")).find(
    ({ source }) => source.kind === "manual_note",
  );
  assert.ok(note, output);
  assert.equal(note.source.runId, run.id);
  assert.equal(note.source.issueId, issue);
  return name;
}

/** The calls of the README's "Without the plugin", and a tool profile for everybody. */
async function memhost_is_a_tool_connection_without_the_plugin(world) {
  const elsewhere = new Elsewhere(world, "http://127.0.0.1:9/v1");
  await elsewhere.start();
  try {
    const company = (await api("POST", "/companies", { name: "Eta" })).id;
    const project = (await api("POST", `/companies/${company}/projects`, { name: "Gateway" })).id;
    const token = execFileSync(
      path.join(MEMHOST, "memhost"),
      [
        "token",
        "create",
        "paperclip",
        "--role",
        "integration",
        "-c",
        company,
        "--url",
        elsewhere.url,
        "--output",
        "json",
      ],
      {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
        env: { PATH: process.env.PATH, HOME: elsewhere.directory, MEMHOST_TOKEN: TOKEN },
      },
    );
    const url = `${elsewhere.url}/mcp`;
    const application = await api("POST", `/companies/${company}/tools/applications`, {
      applicationKey: "memory",
      name: "Memory",
      type: "mcp_http",
    });
    const { connectionId } = await api("POST", `/companies/${company}/tools/apps/connect`, {
      link: url,
      name: "Memory",
      applicationId: application.id,
      authMode: "bearer",
      credentialValues: { "credentials.authorization": JSON.parse(token).value },
    });
    await api("PATCH", `/tool-applications/${application.id}`, { status: "active" });
    await api("PATCH", `/tool-connections/${connectionId}`, {
      status: "active",
      enabled: true,
      config: {
        url,
        headerPolicy: { metadata: { forward: ["company_id", "agent_id", "issue_id", "project_id", "run_id"] } },
      },
    });
    const profile = await api("POST", `/companies/${company}/tools/profiles`, {
      profileKey: "memory",
      name: "Memory",
      defaultAction: "deny",
      entries: [{ selectorType: "connection", connectionId }],
    });
    await api("POST", `/companies/${company}/tools/profiles/${profile.id}/bind`, {
      targetType: "company",
      targetId: company,
    });
    const { run, issue, output, name } = await noted(world, company, project);
    const { snippets } = await elsewhere.ask("POST", `/runtime/v1/companies/${company}/query`, {
      scope: { companyId: company },
      query: "What does the anchor weigh?",
      topK: 5,
    });
    const note = snippets.find(({ text }) => text === NOTE);
    assert.ok(note, output);
    assert.equal(note.source.runId, run.id);
    assert.equal(note.source.issueId, issue);
    return name;
  } finally {
    await elsewhere.stop();
  }
}

export const STEPS = [an_agent_reaches_memory_through_the_gateway, memhost_is_a_tool_connection_without_the_plugin];
