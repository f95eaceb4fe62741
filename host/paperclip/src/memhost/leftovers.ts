// Data directories of earlier installations in the same Paperclip: a purge gives the plugin a new id and leaves the old
// directory. A person adopts it or deletes it. Directories of other Paperclips are not in this one's table of stores.
import { existsSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import type { MemhostPlugin } from "../plugin";
import { directoryOf } from "./directories";

export interface Leftover {
  name: string;
  directory: string;
  lastSeen: string;
}

export async function leftovers(plugin: MemhostPlugin): Promise<Leftover[]> {
  const root = path.dirname(plugin.directory);
  const rows = await plugin.ctx.db.query<{ directory: string | null; last_seen: string }>(
    `SELECT directory, max(last_seen) AS last_seen FROM ${plugin.ledger.namespace}.stores WHERE directory IS NOT NULL GROUP BY directory ORDER BY 2 DESC`,
  );
  return rows.flatMap(({ directory, last_seen: lastSeen }) =>
    directory !== null &&
    directory !== plugin.directory &&
    path.dirname(directory) === root &&
    existsSync(path.join(directory, "data"))
      ? [{ name: path.basename(directory), directory, lastSeen }]
      : [],
  );
}

async function known(plugin: MemhostPlugin, name: string): Promise<string> {
  const directory = directoryOf(path.dirname(plugin.directory), name);
  if (!(await leftovers(plugin)).some((leftover) => leftover.directory === directory))
    throw new Error("there is no such directory of an earlier installation");
  return directory;
}

export async function removeLeftover(plugin: MemhostPlugin, name: string): Promise<{ ok: true }> {
  rmSync(await known(plugin, name), { recursive: true, force: true });
  return { ok: true };
}

/** Takes the old memory in place of the present one, which becomes a directory of an earlier installation. */
export async function adopt(plugin: MemhostPlugin, name: string): Promise<{ ok: true }> {
  const old = await known(plugin, name);
  await plugin.exchange(() => {
    const aside = `${plugin.directory}-${Date.now()}`;
    renameSync(plugin.directory, aside);
    renameSync(old, plugin.directory);
    return aside;
  });
  return { ok: true };
}
