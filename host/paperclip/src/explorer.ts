// The explorer, opened for a person: a token of the company for that person, and a link that signs in with it once.
import type { Context } from "./context";
import { must } from "./memhost/client";

/** How long the person's token is good for; a session of the explorer lasts as long. */
const HOURS = 12;

/** The address that signs this person in. The explorer shows what is private to others, too. */
export async function openExplorer(
  { memory }: Context,
  companyId: string,
  userId: string | null,
): Promise<{ url: string }> {
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
