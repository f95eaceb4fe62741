// What happens seldom: texts over memhost's limit, and memory of an earlier installation.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";
import { api, PACKAGE, until } from "./server.mjs";

const post = async (kind, company, key, params = {}) =>
  (await api("POST", `/plugins/memhost/bridge/${kind}`, { key, companyId: company, params })).data;

export async function withPostgres(world, act) {
  const postgres = createRequire(path.join(world.server.directory, "server/package.json"))("postgres");
  const sql = postgres("postgres://paperclip:paperclip@127.0.0.1:54329/paperclip", { onnotice: () => {} });
  try {
    return await act(sql);
  } finally {
    await sql.end();
  }
}

async function a_text_over_the_limit_is_there_in_all_its_parts(world) {
  const issue = await world.issue(world.alpha, "A very long text");
  const text = `${"A line about nothing at all, which is quite long. ".repeat(2)}\n`.repeat(26_000);
  await withPostgres(
    world,
    (sql) =>
      sql`INSERT INTO issue_comments (company_id, issue_id, author_user_id, author_type, body) VALUES (${world.alpha}::uuid, ${issue}::uuid, 'local-board', 'user', ${text})`,
  );
  const wanted = Math.ceil(Buffer.byteLength(text) / 1_048_576);
  const made = await until(
    "all parts are there",
    async () => {
      const panel = await post("action", world.alpha, "issue", { issueId: issue });
      return panel.made.length === wanted ? panel.made : null;
    },
    30_000,
  );
  assert.equal(
    made.reduce((sum, memory) => sum + memory.text.length, 0),
    text.length,
  );
  return `${made.length} parts`;
}

async function memory_of_an_earlier_installation_is_adopted(world) {
  const text = "The old bell of Alpha rings at noon.";
  await world.comment(await world.issue(world.alpha, "Bells"), text);
  const old = await world.found(world.alpha, "bell of Alpha", text);
  world.server.cli("plugin", "uninstall", "memhost", "--force");
  await until("memhost has ended", () => world.memhosts().length === 0, 9000);
  world.server.cli("plugin", "install", PACKAGE);
  await world.up();
  const [leftover] = (await post("data", world.alpha, "settings")).leftovers;
  assert.ok(leftover, "the old directory is shown");
  // The new memory takes everything in by itself; the old one has the old records.
  assert.notEqual((await world.found(world.alpha, "bell of Alpha", text, 20_000)).id, old.id);
  await world.save(world.alpha, { adoptDirectory: leftover.name });
  await world.up();
  assert.equal((await world.found(world.alpha, "bell of Alpha", text, 20_000)).id, old.id);
  const rest = (await post("data", world.alpha, "settings")).leftovers;
  assert.ok(
    rest.length > 0 && rest.every(({ name }) => name !== leftover.name),
    "the one that it replaced is shown instead",
  );
  await world.save(world.alpha, { adoptDirectory: null, deleteDirectories: rest.map(({ name }) => name) });
  await until(
    "the old directories are deleted",
    async () => (await post("data", world.alpha, "settings")).leftovers.length === 0,
  );
  await world.save(world.alpha, { deleteDirectories: null });
}

export const STEPS = [a_text_over_the_limit_is_there_in_all_its_parts, memory_of_an_earlier_installation_is_adopted];
