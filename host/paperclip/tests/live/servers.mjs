// Two Paperclip servers on one database: one of them serves memory, and the other one uses it and takes its place.
import assert from "node:assert/strict";
import { api, Server, sleep, until, URL_OF } from "./server.mjs";

/** The lease of a server that ended without giving it up, and what it takes to come up. */
const TAKES_OVER_MS = 60_000;

class Two {
  second = new Server("second", Number(new URL(URL_OF).port) + 1);

  constructor(world) {
    this.world = world;
  }

  async start() {
    this.second.fresh();
    await this.second.start({ DATABASE_URL: "postgres://paperclip:paperclip@127.0.0.1:54329/paperclip" });
    for (const server of [this.world.server, this.second]) await this.isUp(server);
  }

  ask = (server, method, route, body) => api(method, route, body, {}, server.url);
  status = (server) => this.ask(server, "GET", `/plugins/memhost/api/status?companyId=${this.world.alpha}`);
  isUp = (server) =>
    until("memory is up", async () => (await this.status(server)).message.startsWith("memhost is up"), TAKES_OVER_MS);

  /** Says something at one server. */
  async say(server, text) {
    const issue = await this.ask(server, "POST", `/companies/${this.world.alpha}/issues`, { title: text.slice(0, 20) });
    await this.ask(server, "POST", `/issues/${issue.id}/comments`, { body: text });
  }

  /** The memories that are this text, as one server answers them. */
  async memories(server, text) {
    const query = `/plugins/memhost/api/search?companyId=${this.world.alpha}&query=${encodeURIComponent(text)}`;
    return (await this.ask(server, "GET", query)).memories.filter((memory) => memory.text === text);
  }

  /** Both servers that run answer it, once, and with one id. */
  async isKnownOnce(servers, text) {
    const ids = new Set();
    for (const server of servers) {
      await until(`${text} is found`, async () => (await this.memories(server, text)).length > 0, TAKES_OVER_MS);
      const found = await this.memories(server, text);
      assert.equal(found.length, 1, `${text} is there once`);
      ids.add(found[0].id);
    }
    assert.equal(ids.size, 1, "one id");
  }
}

async function two_servers_have_one_memory(world) {
  const { server: first } = world;
  const two = new Two(world);
  const said = [];
  try {
    await two.start();
    assert.equal(world.memhosts().length, 1, "one memhost for both");
    assert.match((await two.status(two.second)).message, /served by another server of this Paperclip/);
    for (const [server, text] of [
      [first, "Cormorants dry their wings at the first server."],
      [two.second, "Terns dive beside the second server."],
    ]) {
      await two.say(server, text);
      await two.isKnownOnce([first, two.second], text);
    }

    // The server that serves is gone without a word; its Postgres stays.
    await first.kill("SIGKILL");
    const start = Date.now();
    await two.say(two.second, "Gannets circle while the first server is gone.");
    await two.isUp(two.second);
    await two.isKnownOnce([two.second], "Gannets circle while the first server is gone.");
    await two.isKnownOnce([two.second], "Cormorants dry their wings at the first server.");
    said.push(`taken over after ${Date.now() - start} ms`);
    assert.equal(world.memhosts().length, 1, "one memhost, of the second server");

    await first.start();
    await two.isUp(first);
    assert.match((await two.status(first)).message, /served by another server of this Paperclip/);
    await two.isKnownOnce([first, two.second], "Terns dive beside the second server.");

    // It is stopped in order, so the lease is free at once.
    const stopped = Date.now();
    await two.second.kill("SIGTERM");
    await two.say(first, "Skuas come back when the second server has left.");
    await two.isKnownOnce([first], "Skuas come back when the second server has left.");
    said.push(`given back after ${Date.now() - stopped} ms`);
    await sleep(1000);
    assert.equal(world.memhosts().length, 1, "one memhost is left");
  } finally {
    await two.second.kill("SIGTERM");
    if (first.child === null) await first.start();
    await world.up();
  }
  return said.join(", ");
}

export const STEPS = [two_servers_have_one_memory];
