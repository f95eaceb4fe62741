// Memory as an MCP connection in Paperclip's gateway, for agents of Claude and Codex. The gateway says who calls.
import { must } from "./memhost/client";
import type { Enabling, Target } from "./enabling";
import { BoardError } from "./paperclip/board";

export interface Connected {
  applicationId: string;
  connectionId: string;
  tokenId: string;
  /** When the token ends. */
  expiresAt?: string;
  url: string;
}

/** How long a token is good for, and how long before its end it is replaced. */
const TOKEN_DAYS = 90;
const RENEW_DAYS = 30;
const DAY_MS = 86_400_000;

/** Whether the gateway must get another address or token. */
export const isOutdated = ({ url, expiresAt }: Connected, runtime: string): boolean =>
  url !== `${runtime}/mcp` || expiresAt === undefined || Date.parse(expiresAt) - Date.now() < RENEW_DAYS * DAY_MS;

const NAME = "Memory";
/** With the address as its key, Paperclip makes names of tools that Claude and Codex do not take: over 64 characters. */
const KEY = "memory";
const HEADERS = ["company_id", "agent_id", "issue_id", "project_id", "run_id"];

/** Makes the connection, or brings one that is there up to date: the port of memhost can have changed. */
export async function connectMcp(
  with_: Enabling,
  known: Connected | undefined,
  profileId: string | null,
  targets: Target[],
): Promise<Connected> {
  const { companyId, memory } = with_;
  const address = memory.address;
  if (address === null) throw new Error("memhost is not up");
  const url = `${address.runtime}/mcp`;
  if (known !== undefined && !isOutdated(known, address.runtime) && (await exists(with_, known))) return known;
  if (known !== undefined) await disconnectMcp(with_, known);
  const expiresAt = new Date(Date.now() + TOKEN_DAYS * DAY_MS).toISOString();
  const issued = await must(
    memory.use.POST("/control/v1/companies/{company}/tokens", {
      params: { path: { company: companyId } },
      body: { name: "Paperclip's gateway", role: "integration", expiresAt },
    }),
  );
  try {
    return await connected(with_, { value: issued.value, tokenId: issued.id, expiresAt, url }, profileId, targets);
  } catch (error) {
    // Whatever Paperclip has kept of it opens nothing.
    await revoke(with_, issued.id);
    throw error;
  }
}

async function connected(
  { board, companyId }: Enabling,
  { value, tokenId, expiresAt, url }: { value: string; tokenId: string; expiresAt: string; url: string },
  profileId: string | null,
  targets: Target[],
): Promise<Connected> {
  const applicationId = await application(board, companyId);
  const answer = await board.ask<{ connectionId: string; application: { id: string } }>(
    "POST",
    `/companies/${companyId}/tools/apps/connect`,
    {
      link: url,
      name: NAME,
      applicationId,
      authMode: "bearer",
      credentialValues: { "credentials.authorization": value },
    },
  );
  const made = {
    applicationId: answer.application.id,
    connectionId: answer.connectionId,
    tokenId,
    expiresAt,
    url,
  };
  const config = { url, headerPolicy: { metadata: { forward: HEADERS } } };
  await board.ask("PATCH", `/tool-applications/${made.applicationId}`, { status: "active" });
  await board.ask("PATCH", `/tool-connections/${made.connectionId}`, { status: "active", enabled: true, config });
  await board.ask("POST", `/tool-connections/${made.connectionId}/catalog/refresh`, {}).catch(() => null);
  await board.ask("PUT", `/tool-connections/${made.connectionId}/installs`, { installs: targets });
  if (profileId !== null)
    await board.ask("POST", `/tool-profiles/${profileId}/entries`, {
      selectorType: "connection",
      connectionId: made.connectionId,
    });
  return made;
}

/** The application in Paperclip: one, also after the plugin was purged. Its key begins the names of the tools. */
async function application(board: Enabling["board"], companyId: string): Promise<string> {
  const path = `/companies/${companyId}/tools/applications`;
  const { applications = [] } =
    (await board.ask<{ applications?: { id: string; applicationKey: string | null; name: string }[] } | null>(
      "GET",
      path,
    )) ?? {};
  const known =
    applications.find(({ applicationKey }) => applicationKey === KEY) ?? applications.find(({ name }) => name === NAME);
  if (known !== undefined) return known.id;
  return (await board.ask<{ id: string }>("POST", path, { applicationKey: KEY, name: NAME, type: "mcp_http" })).id;
}

async function exists({ board }: Enabling, { connectionId }: Connected): Promise<boolean> {
  try {
    await board.ask("GET", `/tool-connections/${connectionId}`);
    return true;
  } catch (error) {
    if (error instanceof BoardError && error.status === 404) return false;
    throw error;
  }
}

export async function disconnectMcp(
  with_: Enabling,
  { applicationId, connectionId, tokenId }: Connected,
): Promise<string> {
  const { board } = with_;
  // Paperclip archives a connection that is deleted, and keeps its application as long as there is an archived one.
  for (const undo of [
    () => board.ask("DELETE", `/tool-connections/${connectionId}`),
    () => board.ask("PATCH", `/tool-applications/${applicationId}`, { status: "archived" }),
  ]) {
    try {
      await undo();
    } catch (error) {
      if (!(error instanceof BoardError) || error.status !== 404) throw error;
    }
  }
  await revoke(with_, tokenId);
  return "the connection and its token were removed";
}

async function revoke({ memory, companyId }: Enabling, tokenId: string): Promise<void> {
  await must(
    memory.use.DELETE("/control/v1/companies/{company}/tokens/{id}", {
      params: { path: { company: companyId, id: tokenId } },
    }),
  ).catch(() => null);
}
