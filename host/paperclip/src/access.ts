// Who may do what in a company. Paperclip says who asks and whether they belong to the company; the role is read here,
// for every action and every route of people.
import type { PluginContext } from "@paperclipai/plugin-sdk";
import { saying } from "./memhost/client";

export const ROLES = ["owner", "admin", "operator", "viewer"] as const;
export type Role = (typeof ROLES)[number];

const ADMINISTRATORS: readonly Role[] = ["owner", "admin"];
const MEMBERS: readonly Role[] = ["owner", "admin", "operator"];
/** The roles that may do it. Paperclip lets a viewer send no action, whatever stands here. */
export const ACTIONS = {
  search: MEMBERS,
  browse: MEMBERS,
  issue: MEMBERS,
  note: MEMBERS,
  correct: MEMBERS,
  forget: MEMBERS,
  mark: MEMBERS,
  explorer: ADMINISTRATORS,
  enable: ADMINISTRATORS,
  disable: ADMINISTRATORS,
  retry: ADMINISTRATORS,
  backfill: ADMINISTRATORS,
} as const satisfies Record<string, readonly Role[]>;
export type Action = keyof typeof ACTIONS;

/** The routes below /api/plugins/memhost/api. `agents`: agents may use it, too. */
export const ROUTES = {
  status: { roles: ROLES, agents: true },
  recall: { roles: [], agents: true },
  issue: { roles: ROLES, agents: true },
  search: { roles: ROLES, agents: true },
} as const satisfies Record<string, { roles: readonly Role[]; agents: boolean }>;

/** The only person in the mode local_trusted, where everybody who reaches Paperclip is its administrator. */
const LOCAL = "local-board";

/** Somebody may not do it; the message says who may. */
export class Denied extends Error {}

/** The role of a person in a company; null: none. */
async function roleOf(ctx: PluginContext, companyId: string, userId: string): Promise<Role | null> {
  if (userId === LOCAL) return "owner";
  let members;
  try {
    members = await ctx.access.members.list({ companyId });
  } catch (error) {
    throw new Denied(`who you are in this company cannot be asked of Paperclip: ${saying(error)}`);
  }
  const own = members.find(
    ({ principalType, principalId, status }) =>
      principalType === "user" && principalId === userId && status === "active",
  );
  return ROLES.find((role) => role === own?.membershipRole) ?? null;
}

/** Fails unless the person has one of the roles in the company. */
export async function mustBe(
  ctx: PluginContext,
  companyId: string,
  userId: string | null,
  roles: readonly Role[],
): Promise<void> {
  const role = userId === null ? null : await roleOf(ctx, companyId, userId);
  if (role !== null && roles.includes(role)) return;
  const who = roles.map((one) => `${one}s`).join(" and ");
  throw new Denied(
    role === null
      ? "only members of this company may do this"
      : `only ${who} of this company may do this, and you are ${/^[aeo]/.test(role) ? "an" : "a"} ${role}; ask one of them`,
  );
}
