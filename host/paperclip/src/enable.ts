// Enable: what a company needs beyond remembering, made in steps that can be undone. Each step says what it did.
import { HOOK_KINDS } from "./capture/hooks";
import type { Enabling, Target } from "./enabling";
import { must, saying } from "./memhost/client";
import type { Memory } from "./memory";
import { instruct } from "./instructions";
import { connectMcp, disconnectMcp, type Connected } from "./mcp";
import { BoardError } from "./paperclip/board";
import { TOOLS } from "./tool-declarations";

const PLUGIN = "memhost";
const PROFILE = "memhost-memory";

/** What Enable made, so that it can be taken back. */
export interface Made {
  hooks?: { binding: string; kinds: string[] };
  profileId?: string;
  profileTargets?: Target[];
  skillAgents?: string[];
  skillRef?: string;
  mcp?: Connected;
}
export interface Step {
  step: string;
  done: boolean;
  says: string;
}

const agents = (count: number): string => `${count} agent${count === 1 ? "" : "s"}`;

/** Whom it is for: the pilot's agents, else the company. */
const targets = ({ companyId, settings }: Enabling): Target[] =>
  settings.agents.length > 0
    ? settings.agents.map((targetId) => ({ targetType: "agent", targetId }))
    : [{ targetType: "company", targetId: companyId }];

export async function enable(with_: Enabling): Promise<Step[]> {
  const { host, ledger, companyId } = with_;
  const made: Made = ((await ledger.company(companyId))?.enabled ?? {}) as Made;
  const steps: Step[] = [];
  const step = async (name: string, act: () => Promise<string>): Promise<void> => {
    try {
      steps.push({ step: name, done: true, says: await act() });
    } catch (error) {
      steps.push({ step: name, done: false, says: saying(error) });
    }
    // What was made is known even if the next step ends the worker.
    await ledger.setCompany(companyId, { enabled: made as Record<string, unknown> });
  };
  await step("capture", () => subscribe(with_, made));
  await step("tools", () => profile(with_, made));
  await step("skill", () => skill(with_, made));
  await step("mcp", async () => {
    made.mcp = await connectMcp(with_, made.mcp, made.profileId ?? null, targets(with_));
    await instruct(with_, made.mcp.connectionId);
    return "Claude and Codex agents reach memory through Paperclip's gateway";
  });
  host.logger.info("memory was enabled", { companyId, steps: steps.map(({ step: name, done }) => ({ name, done })) });
  return steps;
}

export async function disable(with_: Enabling): Promise<Step[]> {
  const { ledger, companyId, board, memory, host } = with_;
  const made: Made = ((await ledger.company(companyId))?.enabled ?? {}) as Made;
  const steps: Step[] = [];
  const undo = async (name: string, is: boolean, act: () => Promise<string>): Promise<boolean> => {
    if (!is) return true;
    try {
      steps.push({ step: name, done: true, says: await act() });
      return true;
    } catch (error) {
      const isGone = error instanceof BoardError && error.status === 404;
      steps.push({ step: name, done: isGone, says: isGone ? "it was removed already" : saying(error) });
      return isGone;
    }
  };
  if (await undo("mcp", made.mcp !== undefined, async () => disconnectMcp(with_, made.mcp as Connected)))
    delete made.mcp;
  if (
    await undo("skill", made.skillAgents !== undefined, async () => {
      for (const agentId of made.skillAgents ?? [])
        await board.ask("POST", `/agents/${agentId}/skills/sync`, { mode: "remove", desiredSkills: [made.skillRef] });
      return `the skill was taken from ${agents(made.skillAgents?.length ?? 0)}`;
    })
  ) {
    delete made.skillAgents;
    delete made.skillRef;
  }
  if (
    await undo("tools", made.profileId !== undefined, async () => {
      for (const target of made.profileTargets ?? [])
        await board.ask("POST", `/companies/${companyId}/tools/profiles/${made.profileId}/unbind`, target);
      await board.ask("DELETE", `/tool-profiles/${made.profileId}`, { force: true });
      return "the tool profile was removed";
    })
  ) {
    delete made.profileId;
    delete made.profileTargets;
  }
  if (
    await undo("capture", made.hooks !== undefined, async () => {
      const { binding, kinds } = made.hooks as NonNullable<Made["hooks"]>;
      await changeHooks(memory, companyId, binding, (hooks) => hooks.filter(({ kind }) => !kinds.includes(kind)));
      return `the binding ${binding} takes no more ${kinds.join(", ")}`;
    })
  )
    delete made.hooks;
  await ledger.setCompany(companyId, {
    enabled: Object.keys(made).length === 0 ? null : (made as Record<string, unknown>),
  });
  host.logger.info("memory was disabled", { companyId });
  steps.push({
    step: "configuration",
    done: true,
    says: "the saved settings stay; comments and runs are remembered as before Enable",
  });
  return steps;
}

type Hooks = { kind: string; when?: "active" | "always" }[];

async function changeHooks(
  memory: Memory,
  companyId: string,
  key: string,
  change: (hooks: Hooks) => Hooks,
): Promise<void> {
  const at = { path: { company: companyId, key } };
  const binding = await must(memory.use.GET("/control/v1/companies/{company}/bindings/{key}", { params: at }));
  await must(
    memory.use.PATCH("/control/v1/companies/{company}/bindings/{key}", {
      params: at,
      body: { policy: { ...binding.policy, hooks: change(binding.policy.hooks ?? []) } },
    }),
  );
}

async function subscribe({ memory, companyId }: Enabling, made: Made): Promise<string> {
  await memory.prepare(companyId);
  const { items } = await must(
    memory.use.GET("/control/v1/companies/{company}/bindings", { params: { path: { company: companyId } } }),
  );
  const binding = items.find(({ isDefault }) => isDefault);
  if (binding === undefined) throw new Error("this company has no default binding; set one in the explorer");
  const missing = HOOK_KINDS.filter((kind) => !(binding.policy.hooks ?? []).some((hook) => hook.kind === kind));
  if (missing.length === 0) return `the binding ${binding.key} takes comments, documents and runs`;
  await changeHooks(memory, companyId, binding.key, (hooks) => [
    ...hooks,
    ...missing.map((kind) => ({ kind, when: "active" as const })),
  ]);
  made.hooks = { binding: binding.key, kinds: [...missing] };
  return `the binding ${binding.key} takes ${missing.join(", ")} from now on`;
}

async function profile(with_: Enabling, made: Made): Promise<string> {
  const { board, companyId } = with_;
  const entries = TOOLS.map(({ name }) => ({ selectorType: "tool_name", toolName: `${PLUGIN}:${name}` }));
  const listed = await board.ask<
    { profiles?: { id: string; profileKey: string }[] } | { id: string; profileKey: string }[]
  >("GET", `/companies/${companyId}/tools/profiles`);
  const profiles = Array.isArray(listed) ? listed : (listed.profiles ?? []);
  const known = profiles.find(({ profileKey }) => profileKey === PROFILE);
  const id =
    known?.id ??
    (
      await board.ask<{ id: string }>("POST", `/companies/${companyId}/tools/profiles`, {
        profileKey: PROFILE,
        name: "Memory",
        description: "The tools of memhost",
        defaultAction: "deny",
        entries,
      })
    ).id;
  made.profileId = id;
  made.profileTargets ??= [];
  for (const target of targets(with_)) {
    if (made.profileTargets.some(({ targetId }) => targetId === target.targetId)) continue;
    try {
      await board.ask("POST", `/companies/${companyId}/tools/profiles/${id}/bind`, target);
    } catch (error) {
      if (!(error instanceof BoardError) || error.status !== 409) throw error;
    }
    made.profileTargets.push(target);
  }
  return `${entries.length} tools for ${with_.settings.agents.length === 0 ? "all agents" : agents(with_.settings.agents.length)}`;
}

/** Gives the skill to agents that were hired since Enable. */
export async function skillOfNew(with_: Enabling): Promise<void> {
  const made = ((await with_.ledger.company(with_.companyId))?.enabled ?? {}) as Made;
  if (made.skillAgents === undefined) return;
  const before = made.skillAgents.length;
  await skill(with_, made);
  if (made.skillAgents.length > before)
    await with_.ledger.setCompany(with_.companyId, { enabled: made as Record<string, unknown> });
}

async function skill({ host, board, companyId, settings }: Enabling, made: Made): Promise<string> {
  const hired = await host.db.query<{ id: string }>(
    `SELECT id::text AS id FROM public.agents WHERE company_id = $1::uuid AND status <> 'terminated'`,
    [companyId],
  );
  const some = hired.map(({ id }) => id).filter((id) => settings.agents.length === 0 || settings.agents.includes(id));
  const known = made.skillAgents ?? [];
  if (made.skillRef !== undefined && some.every((id) => known.includes(id)))
    return `${agents(some.length)} may use the skill`;
  const resolved = await host.skills.managed.reconcile("memory", companyId);
  const reference = resolved.skill?.key ?? resolved.skillId;
  if (!reference) throw new Error(`Paperclip did not make the skill (${resolved.status})`);
  made.skillRef = reference;
  made.skillAgents = known;
  const refused: string[] = [];
  for (const id of some) {
    if (made.skillAgents.includes(id)) continue;
    try {
      await board.ask("POST", `/agents/${id}/skills/sync`, { mode: "add", desiredSkills: [reference] });
      made.skillAgents.push(id);
    } catch (error) {
      refused.push(saying(error));
    }
  }
  if (refused.length > 0)
    throw new Error(`${made.skillAgents.length} of ${some.length} agents have the skill; ${refused[0]}`);
  return `${agents(some.length)} may use the skill`;
}
