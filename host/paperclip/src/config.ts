// What an operator can set, with the defaults that Paperclip does not apply to companies without a saved row.
import type { EnvSecretRefBinding } from "@paperclipai/plugin-sdk";

export interface Settings {
  paperclipUrl: string | null;
  boardToken: EnvSecretRefBinding | null;
  /** Paperclip's address as browsers reach it; null: `paperclipUrl`. */
  browserUrl: string | null;
  memhostUrl: string | null;
  memhostToken: EnvSecretRefBinding | null;
  /** The data directory of an earlier installation that is used instead, by its name. */
  adoptDirectory: string | null;
  /** Those that are deleted. */
  deleteDirectories: string[];
  /** Whether agents read of memory before their first prompt, where Paperclip has a place for it. */
  instructions: boolean;
  /** Only these agents use memory; empty: all. */
  agents: string[];
  /** How long the memory of a deleted company is kept, in seconds. */
  eraseGraceSeconds: number;
}

export const DEFAULTS: Settings = {
  paperclipUrl: null,
  boardToken: null,
  browserUrl: null,
  memhostUrl: null,
  memhostToken: null,
  adoptDirectory: null,
  deleteDirectories: [],
  instructions: true,
  agents: [],
  eraseGraceSeconds: 86_400,
};

const isReference = (value: unknown): value is EnvSecretRefBinding =>
  typeof value === "object" && value !== null && (value as { type?: unknown }).type === "secret_ref";

/** What is wrong with an address, or null. */
export function addressProblem(value: string): string | null {
  try {
    const { protocol, username, password } = new URL(value);
    if (protocol !== "http:" && protocol !== "https:") return "it must begin with http:// or https://";
    return username !== "" || password !== "" ? "it must not contain a password" : null;
  } catch {
    return "it is no address; write it like http://127.0.0.1:3100";
  }
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];

/** Reads a saved row. What is missing or wrong is the default. */
export function settingsOf(row: Record<string, unknown> | null | undefined): Settings {
  const address = (value: unknown): string | null =>
    typeof value === "string" && value.trim() !== "" && addressProblem(value.trim()) === null
      ? value.trim().replace(/\/+$/, "")
      : null;
  const grace = row?.eraseGraceSeconds;
  return {
    paperclipUrl: address(row?.paperclipUrl),
    boardToken: isReference(row?.boardToken) ? row.boardToken : null,
    browserUrl: address(row?.browserUrl),
    memhostUrl: address(row?.memhostUrl),
    memhostToken: isReference(row?.memhostToken) ? row.memhostToken : null,
    adoptDirectory: typeof row?.adoptDirectory === "string" && row.adoptDirectory !== "" ? row.adoptDirectory : null,
    deleteDirectories: texts(row?.deleteDirectories),
    instructions: row?.instructions !== false,
    agents: texts(row?.agents),
    eraseGraceSeconds:
      typeof grace === "number" && Number.isFinite(grace) && grace >= 0 ? grace : DEFAULTS.eraseGraceSeconds,
  };
}

/** What is wrong with a row. Paperclip would save it all the same, so the settings page checks it first. */
export function problemsOf(row: Record<string, unknown>): string[] {
  const problems: string[] = [];
  for (const field of ["paperclipUrl", "browserUrl", "memhostUrl"] as const) {
    const value = row[field];
    const problem = typeof value === "string" && value.trim() !== "" ? addressProblem(value.trim()) : null;
    if (problem !== null) problems.push(`${field}: ${problem}`);
  }
  return problems;
}

/** Whether an agent uses memory. */
export function takesPart(settings: Settings, agentId: string | null): boolean {
  return agentId === null || settings.agents.length === 0 || settings.agents.includes(agentId);
}
