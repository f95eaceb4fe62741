// Data directories of earlier installations in the same Paperclip: a purge gives the plugin a new id and leaves the old
// directory. It is about all companies, so Paperclip's administrators adopt or delete it in the plugin's settings.
// Directories of other Paperclips are not in this one's table of stores.
import { existsSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import type { Context } from "../context";
import { directoryOf } from "./directories";

export interface Leftover {
  name: string;
  directory: string;
  lastSeen: string;
}

export async function leftovers(plugin: Context): Promise<Leftover[]> {
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

/** The directory of this name, if an earlier installation has left it. */
async function known(plugin: Context, name: string): Promise<string | null> {
  return (await leftovers(plugin)).find((leftover) => leftover.name === name)?.directory ?? null;
}

export async function removeLeftovers(plugin: Context, names: string[]): Promise<void> {
  for (const name of names) {
    const directory = await known(plugin, name);
    if (directory === null) continue;
    rmSync(directory, { recursive: true, force: true });
    plugin.ctx.logger.info("deleted the data directory of an earlier installation", { directory });
  }
}

/** Takes the old memory in place of the present one, which becomes a directory of an earlier installation. */
export async function adopt(
  plugin: Context,
  name: string,
  exchange: (act: () => string) => Promise<void>,
): Promise<void> {
  const old = await known(plugin, name);
  if (old === null) return;
  await exchange(() => {
    const aside = directoryOf(path.dirname(plugin.directory), `${path.basename(plugin.directory)}-${Date.now()}`);
    renameSync(plugin.directory, aside);
    renameSync(old, plugin.directory);
    return aside;
  });
  plugin.ctx.logger.info("took the memory of an earlier installation", { directory: old });
}
