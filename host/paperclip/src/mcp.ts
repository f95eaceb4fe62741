// Memory as an MCP connection in Paperclip's gateway, for agents of Claude and Codex. The gateway says who calls.
import { must } from "./memhost/client";
import type { Enabling, Target } from "./enable";
import { BoardError } from "./paperclip/board";

export interface Connected {
  applicationId: string;
  connectionId: string;
  tokenId: string;
  url: string;
}

const HEADERS = ["company_id", "agent_id", "issue_id", "project_id", "run_id"];

/** Makes the connection, or brings one that is there up to date: the port of memhost can have changed. */
export async function connectMcp(
  with_: Enabling,
  known: Connected | undefined,
  profileId: string | null,
  targets: Target[],
): Promise<Connected> {
  const { board, companyId, memory } = with_;
  const address = memory.address;
  if (address === null) throw new Error("memhost is not up");
  const url = `${address.runtime}/mcp`;
  if (known?.url === url && (await exists(with_, known))) return known;
  if (known !== undefined) await disconnectMcp(with_, known);
  const issued = await must(
    memory.use.POST("/control/v1/companies/{company}/tokens", {
      params: { path: { company: companyId } },
      body: { name: "Paperclip's gateway", role: "integration" },
    }),
  );
  const connected = await board.ask<{ connectionId: string; application: { id: string } }>(
    "POST",
    `/companies/${companyId}/tools/apps/connect`,
    {
      link: url,
      name: "Memory",
      authMode: "bearer",
      credentialValues: { "credentials.authorization": issued.value },
    },
  );
  const made = {
    applicationId: connected.application.id,
    connectionId: connected.connectionId,
    tokenId: issued.id,
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
  { board, companyId, memory }: Enabling,
  { applicationId, connectionId, tokenId }: Connected,
): Promise<string> {
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
  await must(
    memory.use.DELETE("/control/v1/companies/{company}/tokens/{id}", {
      params: { path: { company: companyId, id: tokenId } },
    }),
  ).catch(() => null);
  return "the connection and its token were removed";
}
