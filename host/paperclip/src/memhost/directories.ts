// Where the plugin's memhost keeps its data: below the user's data directory, by plugin id.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import type { Running } from "./client";

/** The directory of all plugin ids. The worker has no HOME; `homedir` asks the system. */
export function dataRoot(environment: NodeJS.ProcessEnv = process.env): string {
  const base =
    environment.XDG_DATA_HOME ??
    (process.platform === "darwin"
      ? path.join(homedir(), "Library", "Application Support")
      : path.join(homedir(), ".local", "share"));
  return path.join(base, "memhost", "paperclip");
}

/** A plugin id is a directory name here, so nothing else may be in it. */
export function directoryOf(root: string, pluginId: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(pluginId))
    throw new Error(`the plugin id ${JSON.stringify(pluginId)} is not a directory name`);
  return path.join(root, pluginId);
}

/** The port of the last start: Paperclip's gateway keeps an address that has it. */
export function lastPort(directory: string): number {
  try {
    const port = Number(readFileSync(path.join(directory, "port"), "utf8"));
    return Number.isInteger(port) && port > 0 && port < 65536 ? port : 0;
  } catch {
    return 0;
  }
}

export function keepPort(directory: string, port: number): void {
  keep(directory, "port", String(port));
}

function keep(directory: string, name: string, text: string): void {
  const file = path.join(directory, name);
  writeFileSync(`${file}.new`, text, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** Paperclip's address as browsers reach it, where somebody has opened the explorer from there. */
export function backAddress(directory: string): string | null {
  try {
    const { origin, protocol } = new URL(readFileSync(path.join(directory, "paperclip"), "utf8"));
    return protocol === "http:" || protocol === "https:" ? origin : null;
  } catch {
    return null;
  }
}

export function keepBackAddress(directory: string, origin: string): void {
  keep(directory, "paperclip", origin);
}

export function makePrivate(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
}

/** Where the memhost of the server that leads can be reached: for other servers of this machine, and only this user. */
export function keepServing(directory: string, running: Running): void {
  keep(directory, "serving.json", JSON.stringify(running));
}

export function dropServing(directory: string): void {
  rmSync(path.join(directory, "serving.json"), { force: true });
}

/** Null: no server of this machine serves. */
export function serving(directory: string): Running | null {
  try {
    return JSON.parse(readFileSync(path.join(directory, "serving.json"), "utf8")) as Running;
  } catch {
    return null;
  }
}
