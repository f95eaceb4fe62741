// What the pages ask the worker. Numbers and states are data; whatever reads or changes memory is an action, because
// only with an action Paperclip says who asks, and private memory is answered to its owner alone.
import type { PluginContext } from "@paperclipai/plugin-sdk";
import { ACTIONS, mustBe, type Action } from "./access";
import { estimate, preview } from "./backfill";
import { USED } from "./bounds";
import type { Worker } from "./context";
import { costsOf } from "./costs";
import { openExplorer } from "./explorer";
import { disable, enable, type Step } from "./enable";
import type { Enabling } from "./enabling";
import { must, type Schemas } from "./memhost/client";
import { leftovers } from "./memhost/leftovers";
import { boardOf, keyTrouble } from "./paperclip/board";
import { agentsOf, isId, issueOf, namesOf } from "./paperclip/runs";
import { handleOf, nameOf } from "./tools";

type ActionContext = Parameters<Parameters<PluginContext["actions"]["register"]>[1]>[1];
type Params = Record<string, unknown>;

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** The company of the page. Paperclip has checked that the person belongs to it, unless it has checked nothing. */
function companyIn(params: Params): string {
  if (!isId(params.companyId)) throw new Error("there is no company; open the page from a company");
  return params.companyId;
}

/** The company's memory and what is private to the person who asks. */
const scopeOf = (companyId: string, { actor }: ActionContext): Schemas["Scope"] => ({
  companyId,
  subjectId: actor.userId ?? "nobody",
});

/** Reviews that wait. A page of them may be empty, although more follow. */
async function reviewsOf({ memory }: Worker, companyId: string): Promise<{ count: number; hasMore: boolean }> {
  let cursor: string | null = null;
  for (let pages = 0; ; pages += 1) {
    const page: Schemas["ReviewItemPage"] = await must(
      memory.use.GET("/control/v1/companies/{company}/reviews", {
        params: {
          path: { company: companyId },
          query: { status: "pending", limit: 20, ...(cursor === null ? {} : { cursor }) },
        },
      }),
    );
    cursor = page.nextCursor ?? null;
    if (page.items.length > 0 || cursor === null || pages === 10)
      return { count: page.items.length, hasMore: cursor !== null };
  }
}

export function registerPages(plugin: Worker): void {
  const { ctx, memory, ledger, recalls } = plugin;
  // Agents have the tools, which know their run; an action would not.
  const action = (key: Action, act: (params: Params, context: ActionContext) => Promise<unknown>): void =>
    ctx.actions.register(key, async (params, context) => {
      if (context.actor.type === "agent")
        throw new Error(
          "only people may do this; agents have the tools memory.search, memory.note, memory.forget, memory.correct and memory.browse",
        );
      await mustBe(ctx, companyIn(params), context.actor.userId, ACTIONS[key]);
      return act(params, context);
    });

  const shown = async (companyId: string, snippets: Schemas["Snippet"][]) => {
    const names = await namesOf(
      ctx,
      companyId,
      snippets.flatMap(({ source, scope }) =>
        [source?.issueId, scope?.agentId].filter((id): id is string => typeof id === "string"),
      ),
    );
    return snippets.map((snippet) => ({
      id: nameOf(snippet.handle),
      text: snippet.text,
      kind: snippet.source?.kind ?? null,
      issueId: snippet.source?.issueId ?? null,
      issue: names.get(snippet.source?.issueId ?? "") ?? null,
      runId: snippet.source?.runId ?? null,
      agent: names.get(snippet.scope?.agentId ?? "")?.name ?? null,
      createdAt: snippet.createdAt ?? null,
      score: snippet.score ?? null,
    }));
  };

  ctx.data.register("overview", async (params) => {
    const companyId = companyIn(params);
    const isUp = memory.isUp && ledger.store !== "";
    const reviews = isUp ? await reviewsOf(plugin, companyId).catch(() => null) : null;
    const backlog = isUp ? await preview(plugin, companyId) : [];
    const row = isUp ? await ledger.company(companyId) : null;
    const waits = row !== null && row.backfill_after !== null && backlog.some(({ count }) => count > 0);
    return {
      health: plugin.health(companyId),
      backfill: { waits, estimateCents: waits ? await estimate(plugin, companyId, backlog) : null },
      explorer: memory.address?.control ?? null,
      agents: await agentsOf(ctx, companyId),
      counts: isUp ? await ledger.counts(companyId) : [],
      attention: isUp ? await ledger.troubles(companyId) : [],
      held: plugin.held(companyId),
      reviews: reviews?.count ?? null,
      hasMoreReviews: reviews?.hasMore ?? false,
      isCounted: isUp,
      isConfigured: plugin.isConfigured(companyId),
      costs: isUp ? await costsOf(plugin, companyId) : null,
      backlog,
      recalls: isUp ? await recalls.of(companyId, null, 10) : [],
      enabled: row?.enabled ?? null,
    };
  });

  ctx.data.register("settings", async (params) => {
    const companyId = companyIn(params);
    const { boardToken, memhostToken, ...settings } = plugin.settings(companyId);
    const board = await boardOf(ctx, companyId, plugin.settings(companyId)).catch(() => null);
    return {
      keyTrouble: board === null ? null : await keyTrouble(board),
      settings: { ...settings, hasBoardToken: boardToken !== null, hasMemhostToken: memhostToken !== null },
      health: plugin.health(companyId),
      agents: await agentsOf(ctx, companyId),
      directory: plugin.directory,
      elsewhere: plugin.usedElsewhere(),
      enabled: ledger.store === "" ? null : ((await ledger.company(companyId))?.enabled ?? null),
      leftovers: ledger.store === "" ? [] : await leftovers(plugin),
    };
  });

  action("search", async (params, context) => {
    const companyId = companyIn(params);
    const scope = scopeOf(companyId, context);
    const found = await recalls.search(
      {
        companyId,
        agentId: null,
        subjectId: scope.subjectId ?? null,
        runId: null,
        issueId: null,
        projectId: null,
        query: text(params.query),
        way: "page",
      },
      25,
    );
    if (found.hasFailed) throw new Error(`memory was not searched: ${found.skipped}`);
    return { id: found.id, skipped: found.skipped, memories: await shown(companyId, found.snippets) };
  });

  action("browse", async (params, context) => {
    const companyId = companyIn(params);
    await memory.prepare(companyId);
    const page = await must(
      memory.use.POST("/runtime/v1/companies/{company}/list", {
        params: { path: { company: companyId } },
        body: {
          scope: scopeOf(companyId, context),
          limit: 50,
          ...(isId(params.issueId) ? { filter: { issueId: params.issueId } } : {}),
          ...(text(params.cursor) === "" ? {} : { cursor: text(params.cursor) }),
        },
      }),
    );
    return { memories: await shown(companyId, page.items), cursor: page.nextCursor ?? null };
  });

  action("issue", async (params, context) => {
    const companyId = companyIn(params);
    const issueId = text(params.issueId);
    if ((await issueOf(ctx, companyId, issueId)) === null) throw new Error("there is no such issue in this company");
    await memory.prepare(companyId);
    const page = await must(
      memory.use.POST("/runtime/v1/companies/{company}/list", {
        params: { path: { company: companyId } },
        body: { scope: scopeOf(companyId, context), limit: 100, filter: { issueId } },
      }),
    );
    return {
      made: await shown(companyId, page.items),
      hasMore: Boolean(page.nextCursor),
      used: await recalls.of(companyId, issueId, USED),
    };
  });

  action("note", async (params, { actor }) => {
    const companyId = companyIn(params);
    const who = text(params.who);
    if (!isId(who) && who !== "me" && who !== "company")
      throw new Error("say who may read the note: everybody, you, or an agent");
    if (who === "me" && actor.userId === null)
      throw new Error("Paperclip does not say who you are, so the note cannot be yours alone");
    if (isId(who) && !(await agentsOf(ctx, companyId)).some(({ id }) => id === who))
      throw new Error("there is no such agent in this company");
    await memory.prepare(companyId);
    await must(
      memory.use.POST("/runtime/v1/companies/{company}/records", {
        params: { path: { company: companyId } },
        body: {
          scope: { companyId, agentId: isId(who) ? who : null, subjectId: who === "me" ? actor.userId : null },
          records: [{ text: text(params.text) }],
          source: { kind: "manual_note", companyId },
          visibility: isId(who) ? "agent" : who === "me" ? "person" : "company",
        },
      }),
    );
    await plugin.wrote(companyId, "noted", 1, {
      by: actor.userId,
      visibility: isId(who) ? "agent" : who === "me" ? "person" : "company",
    });
    return { ok: true };
  });

  action("explorer", async (params, { actor }) => openExplorer(plugin, companyIn(params), actor.userId));

  action("correct", async (params, context) => {
    const companyId = companyIn(params);
    await must(
      memory.use.POST("/runtime/v1/companies/{company}/correct", {
        params: { path: { company: companyId } },
        body: {
          scope: scopeOf(companyId, context),
          handle: handleOf(text(params.id)),
          patch: { record: { text: text(params.text) } },
        },
      }),
    );
    await plugin.wrote(companyId, "corrected", 1, { by: context.actor.userId ?? context.actor.agentId });
    return { ok: true };
  });

  action("forget", async (params, context) => {
    const companyId = companyIn(params);
    const answer = await must(
      memory.use.POST("/runtime/v1/companies/{company}/forget", {
        params: { path: { company: companyId } },
        body: { scope: scopeOf(companyId, context), handles: [handleOf(text(params.id))] },
      }),
    );
    await plugin.wrote(companyId, "forgot", 1, { by: context.actor.userId ?? context.actor.agentId });
    return { outcomes: answer.outcomes };
  });

  action("mark", async (params, { actor }) => ({
    ok: await recalls.mark(
      companyIn(params),
      text(params.recallId),
      actor.userId ?? actor.agentId ?? "system",
      params.helpful === true,
    ),
  }));

  const switching = (act: (with_: Enabling) => Promise<Step[]>) => async (params: Params) => {
    const companyId = companyIn(params);
    const settings = plugin.settings(companyId);
    const board = await boardOf(ctx, companyId, settings);
    if (board === null)
      throw new Error("the address of Paperclip is not known; an administrator of Paperclip saves it in the settings");
    const with_ = { host: ctx, memory, ledger, board, companyId, settings };
    return { steps: await plugin.inTurn(companyId, () => act(with_)) };
  };
  action("enable", switching(enable));
  action("disable", switching(disable));

  action("retry", async (params) => {
    await ledger.retry(companyIn(params));
    plugin.wake(true);
    return { ok: true };
  });

  action("backfill", async (params) => {
    await ledger.setCompany(companyIn(params), { backfill_after: null });
    plugin.wake(true);
    return { ok: true };
  });
}
