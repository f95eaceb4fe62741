// Enable: documents, tools, skill, gateway and activity; and that it can be undone.
import assert from "node:assert/strict";
import { api, sleep, until, URL_OF } from "./server.mjs";

const action = async (company, key, params = {}) =>
  (await api("POST", "/plugins/memhost/bridge/action", { key, companyId: company, params })).data;
const data = async (company, key, params = {}) =>
  (await api("POST", "/plugins/memhost/bridge/data", { key, companyId: company, params })).data;

async function enable_says_what_it_did(world) {
  await world.save(world.alpha, { paperclipUrl: URL_OF });
  const { steps } = await action(world.alpha, "enable");
  for (const step of steps) assert.ok(step.done, `${step.step}: ${step.says}`);
  await sleep(300);
  return steps.map(({ step, says }) => `${step}: ${says}`).join("; ");
}

async function documents_are_replaced_by_their_next_revision(world) {
  const issue = await world.issue(world.alpha, "Write the plan");
  const put = (body, more = {}) =>
    api("PUT", `/issues/${issue}/documents/plan`, { title: "Plan", format: "markdown", body, ...more });
  const first = await put("# Plan\nThe mole is made of granite.");
  await world.found(world.alpha, "What is the mole made of?", "granite", 8000);
  await put("# Plan\nThe mole is made of basalt.", { baseRevisionId: first.latestRevisionId });
  await world.found(world.alpha, "What is the mole made of?", "basalt", 8000);
  await world.lost(world.alpha, "What is the mole made of?", "granite", 8000);
  await api("DELETE", `/issues/${issue}/documents/plan`);
  await world.lost(world.alpha, "What is the mole made of?", "basalt", 25_000);
}

async function tools_act_for_the_run(world) {
  const project = (await api("POST", `/companies/${world.alpha}/projects`, { name: "Harbour" })).id;
  const call = (tool, parameters) =>
    `curl -s -X POST -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" -H 'content-type: application/json' "$PAPERCLIP_API_URL/api/plugins/tools/execute" -d '{"tool":"memhost:${tool}","parameters":${JSON.stringify(parameters)},"runContext":{"agentId":"'$PAPERCLIP_AGENT_ID'","runId":"'$PAPERCLIP_RUN_ID'","companyId":"'$PAPERCLIP_COMPANY_ID'","projectId":"${project}"}}'; echo`;
  const agent = await world.hire(
    world.alpha,
    "Tool",
    [
      call("memory.note", { text: "The dredger arrives on 3 May." }),
      call("memory.note", { text: "My own secret is marzipan.", visibility: "agent" }),
      call("memory.search", { query: "When does the dredger arrive?" }),
      call("memory.browse", {}),
      call("memory.search", { query: "Where is the safe?" }),
    ].join("\n"),
  );
  await world.action(world.alpha, "note", { text: "Only for you: the safe is behind the map.", who: agent });
  const issue = await world.issue(world.alpha, "Use the tools", {
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
  assert.match(output, /Noted\./, output);
  const note = (await world.search(world.alpha, "When does the dredger arrive?")).find(
    ({ source }) => source.kind === "manual_note",
  );
  assert.ok(note, output);
  assert.equal(note.source.runId, run.id);
  assert.equal(note.source.issueId, issue);
  assert.match(output, /behind the map/, "a person tells one agent something");
  assert.ok(
    !(await world.search(world.alpha, "Where is the safe?")).some(({ text }) => text.startsWith("Only for you")),
    "and nobody else is answered it",
  );
  assert.ok(
    !(await world.search(world.alpha, "secret marzipan")).some(({ text }) => text === "My own secret is marzipan."),
    "an agent's private note is not shown to a person",
  );
  return output.slice(0, 300);
}

async function pages_show_search_correct_and_forget(world) {
  const issue = await world.issue(world.alpha, "Pages");
  await world.comment(issue, "The buoy is painted green.");
  await world.found(world.alpha, "buoy", "green");
  const found = await action(world.alpha, "search", { query: "What colour is the buoy?" });
  const memory = found.memories.find(({ text }) => text.includes("buoy"));
  assert.equal(memory.issueId, issue);
  assert.deepEqual((await action(world.beta, "search", { query: "What colour is the buoy?" })).memories, []);
  assert.ok((await action(world.alpha, "mark", { recallId: found.id, helpful: true })).ok);
  await action(world.alpha, "correct", { id: memory.id, text: "The buoy is painted red." });
  await world.found(world.alpha, "buoy", "red");
  const panel = await action(world.alpha, "issue", { issueId: issue });
  assert.equal(panel.made.length, 1);
  await assert.rejects(action(world.beta, "issue", { issueId: issue }), /no such issue/);
  await action(world.alpha, "forget", { id: panel.made[0].id });
  await world.lost(world.alpha, "buoy", "buoy");
  const overview = await data(world.alpha, "overview");
  assert.equal(overview.health.status, "ok", JSON.stringify(overview.health));
  return JSON.stringify(overview.counts);
}

async function activity_names_what_memory_took(world) {
  const activity = await api("GET", `/companies/${world.alpha}/activity?limit=200`);
  const own = activity.filter(
    ({ action: message, actorType }) => actorType === "plugin" && message.startsWith("Memory"),
  );
  const run = own.find(({ action: message }) => message.includes("a run"));
  assert.ok(run?.details.runId && run.details.agentId, JSON.stringify(run));
  assert.ok(own.length > 0, JSON.stringify(activity.slice(0, 3)));
  return `${own.length} entries`;
}

async function disable_takes_it_back(world) {
  const { steps } = await action(world.alpha, "disable");
  for (const step of steps) assert.ok(step.done, `${step.step}: ${step.says}`);
  const text = "Still remembered after Disable.";
  await world.comment(await world.issue(world.alpha, "After"), text);
  await world.found(world.alpha, text, text);
  const again = await action(world.alpha, "enable");
  for (const step of again.steps) assert.ok(step.done, `again, ${step.step}: ${step.says}`);
  return steps.map(({ step, says }) => `${step}: ${says}`).join("; ");
}

export const STEPS = [
  enable_says_what_it_did,
  documents_are_replaced_by_their_next_revision,
  tools_act_for_the_run,
  pages_show_search_correct_and_forget,
  activity_names_what_memory_took,
  disable_takes_it_back,
];
