// What is remembered, forgotten, and kept apart.
import assert from "node:assert/strict";
import { api, until } from "./server.mjs";

async function comment_is_found_in_its_company_only(world) {
  const issue = await world.issue(world.alpha, "Plan the harbour");
  const text = "The harbour master of Lübeck 港 is Wilhelmine; she drinks oolong.";
  const start = Date.now();
  const id = await world.comment(issue, text);
  const found = await world.found(world.alpha, "Who is the harbour master?", text);
  const took = Date.now() - start;
  assert.equal(found.source.commentId, id);
  assert.equal(found.source.issueId, issue);
  assert.deepEqual(await world.search(world.beta, "Who is the harbour master?"), []);
  assert.ok(took < 2000, `${took} ms`);
  return `found after ${took} ms`;
}

async function long_comments_are_taken_whole(world) {
  const issue = await world.issue(world.alpha, "A long text");
  await world.comment(
    issue,
    `${"Filler about nothing in particular. ".repeat(3000)}\nThe very last word is Zwetschgenknödel.`,
  );
  await world.found(world.alpha, "Zwetschgenknödel last word", "Zwetschgenknödel", 10_000);
}

async function deleted_comment_is_forgotten(world) {
  const issue = await world.issue(world.alpha, "Secrets of the harbour");
  const text = "The password of the crane is swordfish.";
  const id = await world.comment(issue, text);
  await world.found(world.alpha, "password of the crane", text);
  await api("DELETE", `/issues/${issue}/comments/${id}`);
  await world.lost(world.alpha, "password of the crane", text, 20_000);
}

async function deleted_issue_is_forgotten(world) {
  const issue = await world.issue(world.alpha, "A short-lived issue");
  const text = "The ferry to Samsø leaves at 05:45.";
  await world.comment(issue, text);
  await world.found(world.alpha, "ferry to Samsø", text);
  await api("DELETE", `/issues/${issue}`);
  await world.lost(world.alpha, "ferry to Samsø", text, 20_000);
}

async function runs_are_remembered_with_agent_and_issue(world) {
  const issue = await world.issue(world.alpha, "Count the steps", { assigneeAgentId: world.agent, status: "todo" });
  const found = await world.found(world.alpha, "How many steps has the lighthouse?", "143 steps", 40_000);
  assert.equal(found.source.kind, "run");
  assert.equal(found.source.issueId, issue);
  // Paperclip may run an issue again.
  const runs = await api("GET", `/companies/${world.alpha}/heartbeat-runs?limit=20&agentId=${world.agent}`);
  assert.ok(
    runs.some(({ id }) => id === found.source.runId),
    found.source.runId,
  );
}

async function recalled_text_does_not_come_back_as_memory(world) {
  const script = `curl -s -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" "$PAPERCLIP_API_URL/api/plugins/memhost/api/recall"\necho; echo "The parrot is called Käpten."`;
  const agent = await world.hire(world.alpha, "Echo", script);
  const issue = await world.issue(world.alpha, "Who is the harbour master?", {
    assigneeAgentId: agent,
    status: "todo",
  });
  const found = await world.found(world.alpha, "What is the parrot called?", "Käpten", 40_000);
  assert.equal(found.source.issueId, issue);
  assert.ok(!found.text.includes("Wilhelmine"), found.text);
  assert.ok(!found.text.includes("memhost-recall"), found.text);
  const full = await api("GET", `/heartbeat-runs/${found.source.runId}`);
  assert.match(JSON.stringify(full), /Wilhelmine/, "the run got what memory knows");
}

async function deleted_company_is_kept_for_its_grace_period(world) {
  const gamma = (await api("POST", "/companies", { name: "Gamma" })).id;
  await world.comment(await world.issue(gamma, "x"), "Gamma makes umbrellas.");
  await world.found(gamma, "What does Gamma make?", "umbrellas");
  await api("DELETE", `/companies/${gamma}`);
  await until("Paperclip has deleted it", async () => !(await api("GET", "/companies")).some(({ id }) => id === gamma));
}

export const STEPS = [
  comment_is_found_in_its_company_only,
  long_comments_are_taken_whole,
  deleted_comment_is_forgotten,
  deleted_issue_is_forgotten,
  runs_are_remembered_with_agent_and_issue,
  recalled_text_does_not_come_back_as_memory,
  deleted_company_is_kept_for_its_grace_period,
];
