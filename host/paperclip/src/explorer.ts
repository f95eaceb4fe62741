// The explorer, opened for a person: a token of the company for that person, and a link that signs in with it once.
import { addressProblem } from "./config";
import { must } from "./memhost/client";
import { boardOf } from "./paperclip/board";
import type { MemhostPlugin } from "./plugin";

/** How long the person's token is good for; a session of the explorer lasts as long. */
const HOURS = 12;
/** The only person in the mode local_trusted. */
const LOCAL = "local-board";

/** The address that signs this person in. `origin` is Paperclip's as this browser reaches it: the explorer links back there. */
export async function openExplorer(
  plugin: MemhostPlugin,
  companyId: string,
  userId: string | null,
  origin: string,
): Promise<{ url: string }> {
  const problem = addressProblem(origin);
  if (problem !== null) throw new Error(`the address of this page is not usable: ${problem}`);
  await mustAdminister(plugin, companyId, userId);
  await plugin.linkBack(new URL(origin).origin);
  const { memory } = plugin;
  await memory.prepare(companyId);
  const { value } = await must(
    memory.use.POST("/control/v1/companies/{company}/tokens", {
      params: { path: { company: companyId } },
      body: {
        name: `Paperclip: ${userId}`,
        role: "company_administrator",
        expiresAt: new Date(Date.now() + HOURS * 3_600_000).toISOString(),
      },
    }),
  );
  const address = memory.address;
  if (address === null) throw new Error("memhost is starting again; try once more");
  const answer = await fetch(`${address.control}/sign-in/link`, {
    method: "POST",
    headers: { authorization: `Bearer ${address.token}`, "content-type": "application/json" },
    body: JSON.stringify({ token: value }),
    signal: AbortSignal.timeout(10_000),
  });
  if (!answer.ok) throw new Error(`memhost made no link: it answered ${answer.status}`);
  const { path } = (await answer.json()) as { path: string };
  return { url: `${address.control}${path}&next=${encodeURIComponent(`/c/${companyId}`)}` };
}

/** The explorer shows what is private to others, too, so it is for owners and administrators of the company. */
async function mustAdminister(plugin: MemhostPlugin, companyId: string, userId: string | null): Promise<void> {
  if (userId === LOCAL) return;
  const board = await boardOf(plugin.ctx, companyId, plugin.settings(companyId));
  if (board === null)
    throw new Error(
      "who may open the explorer is asked of Paperclip; save its address and a board API key in the settings",
    );
  const { members } = await board.ask<{
    members: { principalType: string; principalId: string; membershipRole: string | null; status: string }[];
  }>("GET", `/companies/${companyId}/members`);
  const own = members.find(
    ({ principalType, principalId, status }) =>
      principalType === "user" && principalId === userId && status === "active",
  );
  if (userId === null || !["owner", "admin"].includes(own?.membershipRole ?? ""))
    throw new Error("only owners and administrators of the company may open the explorer");
}
