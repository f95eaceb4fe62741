// A stand-in for Claude: an agent that speaks MCP with Paperclip's gateway, as Paperclip configures it for a run.
import assert from "node:assert/strict";
import { api, sleep, until, URL_OF } from "./server.mjs";

const action = async (company, key, params = {}) =>
  (await api("POST", "/plugins/memhost/bridge/action", { key, companyId: company, params })).data;

async function an_agent_reaches_memory_through_the_gateway(world) {
  await world.save(world.alpha, { paperclipUrl: URL_OF });
  const { steps } = await action(world.alpha, "enable");
  assert.ok(
    steps.every(({ done }) => done),
    JSON.stringify(steps),
  );
  await sleep(300);
  const project = (await api("POST", `/companies/${world.alpha}/projects`, { name: "Gateway" })).id;
  const headers = `-H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" -H 'content-type: application/json'`;
  const script = [
    `S=$(curl -s -X POST ${headers} "$PAPERCLIP_API_URL/api/tool-gateway/sessions" -d '{"agentId":"'$PAPERCLIP_AGENT_ID'","runId":"'$PAPERCLIP_RUN_ID'","companyId":"'$PAPERCLIP_COMPANY_ID'","issueId":"'$PAPERCLIP_TASK_ID'","projectId":"${project}"}')`,
    `echo "session: $S"`,
    `T=$(echo "$S" | sed -n 's/.*"token":"\\([^"]*\\)".*/\\1/p')`,
    `echo "tools: $(curl -s ${headers} -H "x-paperclip-tool-gateway-token: $T" "$PAPERCLIP_API_URL/api/tool-gateway/tools")"`,
    `N=$(curl -s ${headers} -H "x-paperclip-tool-gateway-token: $T" "$PAPERCLIP_API_URL/api/tool-gateway/tools" | tr ',{' '\\n\\n' | sed -n 's/.*"name":"\\([^"]*memory-note\\)".*/\\1/p' | head -1)`,
    `echo "name: $N"`,
    `curl -s -X POST ${headers} -H "x-paperclip-tool-gateway-token: $T" "$PAPERCLIP_API_URL/api/tool-gateway/tools/call" -d '{"tool":"'"$N"'","parameters":{"text":"Told through the gateway: the anchor weighs 3 tons."}}'`,
  ].join("\n");
  const agent = await world.hire(world.alpha, "Claude", script);
  const issue = await world.issue(world.alpha, "Speak MCP", {
    assigneeAgentId: agent,
    status: "todo",
    projectId: project,
  });
  const run = await until(
    "the run has ended",
    async () => {
      const [last] = await api("GET", `/companies/${world.alpha}/heartbeat-runs?limit=1&agentId=${agent}`);
      return last?.finishedAt ? api("GET", `/heartbeat-runs/${last.id}`) : null;
    },
    60_000,
  );
  const output = String(run.resultJson?.stdout ?? run.stdoutExcerpt);
  const note = (await world.search(world.alpha, "What does the anchor weigh?")).find(
    ({ source }) => source.kind === "manual_note",
  );
  assert.ok(note, output);
  // Claude and Codex put the gateway's name in front, and take 64 characters.
  const name = /^name: (.*)$/m.exec(output)?.[1] ?? "";
  assert.ok(name !== "" && `mcp__paperclip__${name}`.length <= 64, name);
  assert.equal(note.source.runId, run.id);
  assert.equal(note.source.issueId, issue);
  return name;
}

export const STEPS = [an_agent_reaches_memory_through_the_gateway];
