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

/** The board as a company's settings name it; null where they name none. The key is read for each use and not kept. */
export async function boardOf(host: Host, companyId: string, settings: Settings): Promise<Board | null> {
  const url = settings.paperclipUrl;
  if (url === null) return null;
  if (settings.boardToken === null) return new Board(url, null);
  return new Board(url, await host.secrets.resolve(settings.boardToken, { companyId, configPath: "boardToken" }));
}
