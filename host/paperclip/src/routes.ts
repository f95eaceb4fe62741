// The plugin's own routes below /api/plugins/memhost/api. Paperclip has checked who asks and for which company.
import type { PluginApiRequestInput, PluginApiResponse } from "@paperclipai/plugin-sdk";
import { Denied, mustBe, ROUTES } from "./access";
import type { Worker } from "./context";
import { issueOf, runOf } from "./paperclip/runs";
import { nameOf } from "./tools";

const one = (value: string | string[] | undefined): string => (Array.isArray(value) ? (value[0] ?? "") : (value ?? ""));

export async function answer(plugin: Worker, input: PluginApiRequestInput): Promise<PluginApiResponse> {
  const { companyId, actor } = input;
  const route = Object.hasOwn(ROUTES, input.routeKey) ? ROUTES[input.routeKey as keyof typeof ROUTES] : null;
  if (route === null) return { status: 404, body: { error: "there is no such route" } };
  try {
    if (!(route.agents && actor.actorType === "agent" && actor.agentId))
      await mustBe(plugin.ctx, companyId, actor.userId ?? null, route.roles);
  } catch (error) {
    if (error instanceof Denied) return { status: 403, body: { error: error.message } };
    throw error;
  }
  const query = one(input.query.query);
  const agentId = actor.agentId ?? null;
  const subjectId = agentId === null ? (actor.userId ?? "nobody") : null;
  const run = agentId === null ? null : await runOf(plugin.ctx, companyId, actor.runId);
  if (run !== null && run.agentId !== agentId) return { status: 403, body: { error: "this run is another agent's" } };
  switch (input.routeKey) {
    case "status":
      return {
        status: 200,
        body: {
          ...plugin.health(companyId),
          counts: plugin.ledger.store === "" ? [] : await plugin.ledger.counts(companyId),
        },
      };
    case "recall": {
      const recalled = await plugin.recalls.hydrate({
        companyId,
        agentId,
        runId: run?.runId ?? null,
        issueId: run?.issueId ?? null,
        projectId: run?.projectId ?? null,
        way: "route",
        query: query || [run?.title, run?.description].filter(Boolean).join("\n"),
      });
      return {
        status: 200,
        body: { id: recalled.id, text: recalled.text, skipped: recalled.skipped, found: recalled.found },
      };
    }
    case "issue": {
      const issueId = input.params.issueId ?? "";
      const issue = await issueOf(plugin.ctx, companyId, issueId);
      if (issue === null) return { status: 404, body: { error: "there is no such issue in this company" } };
      const recalled = await plugin.recalls.hydrate({
        companyId,
        agentId,
        subjectId,
        runId: run?.runId ?? null,
        issueId,
        projectId: issue.projectId,
        way: "route",
        query: query || [issue.title, issue.description].filter(Boolean).join("\n"),
      });
      return {
        status: 200,
        body: { id: recalled.id, text: recalled.text, skipped: recalled.skipped, found: recalled.found },
      };
    }
    case "search": {
      const topK = Math.min(Math.max(Number.parseInt(one(input.query.topK), 10) || 10, 1), 50);
      const found = await plugin.recalls.search(
        {
          companyId,
          agentId,
          subjectId,
          runId: run?.runId ?? null,
          issueId: null,
          projectId: null,
          query,
          way: "route",
        },
        topK,
      );
      return {
        status: 200,
        body: {
          id: found.id,
          skipped: found.skipped,
          memories: found.snippets.map((snippet) => ({
            id: nameOf(snippet.handle),
            text: snippet.text,
            source: snippet.source ?? null,
            score: snippet.score ?? null,
          })),
        },
      };
    }
    default:
      return { status: 404, body: { error: "there is no such route" } };
  }
}
