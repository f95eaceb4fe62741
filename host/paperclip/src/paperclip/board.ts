// Paperclip's own HTTP API, as a board member: what the plugin SDK has no call for.
import { clip } from "../capture/text";
import type { Settings } from "../config";
import { saying } from "../memhost/client";
import type { Host } from "./host";

/** Paperclip refused, or does not answer (status 0). */
export class BoardError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export class Board {
  constructor(
    readonly url: string,
    private readonly token: string | null,
  ) {}

  get hasKey(): boolean {
    return this.token !== null;
  }

  /** The answer's body. A refusal is a BoardError that says what to do. */
  async ask<T>(method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<T> {
    let answer: Response;
    let text: string;
    try {
      answer = await fetch(`${this.url}/api${path}`, {
        method,
        headers: {
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...(this.token === null ? {} : { authorization: `Bearer ${this.token}` }),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: AbortSignal.timeout(15_000),
      });
      text = await answer.text();
    } catch (error) {
      throw new BoardError(
        0,
        `Paperclip does not answer at ${this.url} (${saying(error)}); set its address in the settings`,
      );
    }
    if (answer.status === 401 || answer.status === 403) {
      throw new BoardError(
        answer.status,
        this.token === null
          ? "Paperclip asks for a board API key: make one with `paperclipai token board create` and save it in the settings"
          : `the board API key may not do this (${clip(text, 200)})`,
      );
    }
    if (!answer.ok)
      throw new BoardError(
        answer.status,
        `Paperclip answered ${answer.status} to ${method} ${path}: ${clip(text, 300)}`,
      );
    return (text === "" ? null : JSON.parse(text)) as T;
  }
}

const DAY_MS = 86_400_000;
/** How long before its end a key is spoken of. */
const SOON_DAYS = 7;
const RENEW = "make another one with `paperclipai token board create` and save it in the settings";

/** What is wrong with the board API key, or will be within a week; null: nothing. */
export async function keyTrouble(board: Board): Promise<string | null> {
  if (!board.hasKey) return null;
  try {
    const { keyId } = await board.ask<{ keyId: string | null }>("GET", "/cli-auth/me");
    const keys = await board.ask<{ id: string; expiresAt: string | null }[]>("GET", "/board-api-keys");
    const ends = keys.find(({ id }) => id === keyId)?.expiresAt ?? null;
    if (ends === null || Date.parse(ends) - Date.now() > SOON_DAYS * DAY_MS) return null;
    return `the board API key ends at ${ends.slice(0, 16).replace("T", " ")} UTC; after that, what Enable has set up is not kept up to date; ${RENEW}`;
  } catch (error) {
    const isRefused = error instanceof BoardError && [401, 403].includes(error.status);
    return isRefused ? `the board API key is refused: it has ended, or was revoked; ${RENEW}` : null;
  }
}

/** The board as a company's settings name it; null where they name none. The key is read for each use and not kept. */
export async function boardOf(host: Host, companyId: string, settings: Settings): Promise<Board | null> {
  const url = settings.paperclipUrl;
  if (url === null) return null;
  if (settings.boardToken === null) return new Board(url, null);
  return new Board(url, await host.secrets.resolve(settings.boardToken, { companyId, configPath: "boardToken" }));
}
