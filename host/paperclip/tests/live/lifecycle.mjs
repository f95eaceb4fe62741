// Every process is killed, the plugin is disabled and removed: nothing is lost, nothing stays.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { withPostgres } from "./edges.mjs";
import { api, sleep, until } from "./server.mjs";

let round = 0;
/** Something that nobody has said yet. */
const news = () =>
  `Pigeon number ${(round += 1)} is called ${["Ada", "Bo", "Cy", "Di", "Ed"][round % 5]}${round}${Date.now() % 10000}.`;

async function said(world) {
  world.harbour ??= await world.issue(world.alpha, "Pigeons");
  const text = news();
  await world.comment(world.harbour, text);
  return text;
}

async function back(world, text, milliseconds) {
  const start = Date.now();
  await world.found(world.alpha, text, text, milliseconds);
  const all = (await world.search(world.alpha, text)).filter((memory) => memory.text === text);
  assert.equal(all.length, 1, "captured once");
  return `back after ${Date.now() - start} ms`;
}

async function memhost_killed(world) {
  await world.up();
  for (const pid of world.memhosts()) process.kill(pid, "SIGKILL");
  return back(world, await said(world), 3500);
}

async function worker_killed(world) {
  await world.up();
  const [worker] = world.workers();
  process.kill(worker, "SIGKILL");
  const text = await said(world);
  const took = await back(world, text, 6000);
  await until("one memhost is left", () => world.memhosts().length === 1, 3000);
  return took;
}

async function server_killed(world) {
  const text = await said(world);
  await world.server.kill("SIGKILL");
  const start = Date.now();
  await until("nothing is left running", () => world.memhosts().length === 0 && world.workers().length === 0, 3000);
  const ended = Date.now() - start;
  await world.server.start();
  return `nothing left after ${ended} ms; ${await back(world, text, 15_000)}`;
}

async function companies_without_settings_leave_no_error(world) {
  for (let n = 0; n < 20; n += 1) await api("POST", "/companies", { name: `Quiet ${n}` });
  await world.server.kill("SIGTERM");
  const before = readFileSync(world.server.log, "utf8").length;
  await world.server.start();
  await world.up();
  // The plugin asks for settings that it was not told for a while.
  await sleep(20_000);
  const lines = readFileSync(world.server.log, "utf8").slice(before).split("\n");
  assert.deepEqual(
    // The step itself asks for the status until memory is up, and each 503 is such a line.
    lines.filter((line) => line.includes("ERROR") && !line.includes("GET /status 503")),
    [],
  );
  return `${lines.length} lines, no error`;
}

async function disabled_and_enabled(world) {
  const { id } = (await api("GET", "/plugins")).find(({ pluginKey }) => pluginKey === "memhost");
  await api("POST", `/plugins/${id}/disable`, {});
  await until("memhost has ended", () => world.memhosts().length === 0, 9000);
  const text = await said(world);
  await api("POST", `/plugins/${id}/enable`, {});
  return back(world, text, 8000);
}

/** All texts that came from an issue of Alpha. */
async function remembered(world, issue) {
  const texts = [];
  for (let cursor; ; ) {
    const page = await world.action(world.alpha, "browse", { issueId: issue, ...(cursor ? { cursor } : {}) });
    texts.push(...page.memories.map(({ text }) => text));
    cursor = page.cursor;
    if (!cursor) return texts;
  }
}

async function killed_in_the_middle_of_a_batch(world) {
  const issue = await world.issue(world.alpha, "A long list");
  const wanted = 2000;
  const sent = async () =>
    (await world.status()).counts
      .filter(({ kind, status }) => kind === "comment" && status === "sent")
      .reduce((sum, { n }) => sum + n, 0);
  const before = await sent();
  await withPostgres(
    world,
    (
      sql,
    ) => sql`INSERT INTO issue_comments (company_id, issue_id, author_user_id, author_type, body, created_at, updated_at)
    SELECT ${world.alpha}::uuid, ${issue}::uuid, 'local-board', 'user', 'Row ' || n || ' of the list.', now() - (${wanted} - n) * interval '1 second', now() FROM generate_series(1, ${wanted}) n`,
  );
  const killed = [];
  for (const what of ["memhost", "worker", "memhost", "memhost"]) {
    await world.up();
    // Its batches are on their way: it comes to the ledger page after page.
    const start = await sent();
    await until("it goes on", async () => (await sent()) > start || start >= before + wanted, 40_000);
    await sleep(Math.random() * 150);
    for (const pid of what === "memhost" ? world.memhosts() : world.workers()) process.kill(pid, "SIGKILL");
    killed.push(`${what} after ${start - before}`);
    await sleep(300);
  }
  await until("all of it is handed over", async () => (await sent()) >= before + wanted, 90_000);
  await world.found(world.alpha, `Row ${wanted} of the list`, `Row ${wanted} of`, 240_000);
  const texts = await until(
    "all of it is there",
    async () => {
      const found = await remembered(world, issue);
      return found.length >= wanted ? found : null;
    },
    60_000,
  );
  assert.deepEqual(texts.sort(), Array.from({ length: wanted }, (_, n) => `Row ${n + 1} of the list.`).sort());
  return killed.join(", ");
}

/** KILLS: how often. A server takes ten seconds to come back, so it is killed less often than the others. */
async function killed_at_random_under_load(world) {
  const rounds = Number(process.env.KILLS ?? 10);
  const issue = await world.issue(world.alpha, "Under load");
  const written = [];
  let isOver = false;
  const writer = (async () => {
    while (!isOver) {
      const body = `Barrel ${written.length} holds ${["rum", "herring", "tar"][written.length % 3]}.`;
      try {
        await world.comment(issue, body);
        written.push(body);
      } catch {
        await sleep(200);
      }
      await sleep(20);
    }
  })();
  const kills = { worker: 0, memhost: 0, server: 0 };
  for (let done = 0; done < rounds; done += 1) {
    await sleep(Math.random() * 2500);
    const what = done % 8 === 7 ? "server" : Math.random() < 0.5 ? "worker" : "memhost";
    kills[what] += 1;
    if (what === "server") {
      await world.server.kill("SIGKILL");
      await world.server.start();
    } else
      for (const pid of what === "worker" ? world.workers().slice(0, 1) : world.memhosts().slice(0, 1))
        process.kill(pid, "SIGKILL");
  }
  isOver = true;
  await writer;
  await until(
    "the load is remembered",
    async () =>
      (await world.status()).counts
        .filter(({ kind, status }) => kind === "comment" && status === "sent")
        .reduce((sum, { n }) => sum + n, 0) >= written.length,
    60_000,
  );
  // A comment whose answer got lost with the server was not counted, and is remembered all the same.
  const stored = (await api("GET", `/issues/${issue}/comments?limit=5000`)).map(({ body }) => body);
  stored.sort();
  const found = async () => (await remembered(world, issue)).filter((text) => text.startsWith("Barrel")).sort();
  // The last kill may have come after everything was sent, and may not be noticed yet.
  const isThere = () =>
    found().then(
      (texts) => texts.length >= stored.length,
      () => false,
    );
  await until("memory answers after the last kill", isThere, 30_000);
  assert.deepEqual(await found(), stored);
  return `${stored.length} comments, killed ${JSON.stringify(kills)}`;
}

async function uninstalled_leaves_no_process(world) {
  world.server.cli("plugin", "uninstall", "memhost");
  await until("memhost has ended", () => world.memhosts().length === 0 && world.workers().length === 0, 9000);
}

export const STEPS = [
  memhost_killed,
  worker_killed,
  server_killed,
  companies_without_settings_leave_no_error,
  disabled_and_enabled,
  killed_in_the_middle_of_a_batch,
  killed_at_random_under_load,
  uninstalled_leaves_no_process,
];
