// Memory in a real Paperclip, end to end: node tests/live/run.mjs [part of a name …]
// PAPERCLIP_DIR: where Paperclip is installed and keeps its data; MEMHOST_DIR: the directory of the program memhost.
import { Server } from "./server.mjs";
import { World } from "./world.mjs";
import * as authenticated from "./authenticated.mjs";
import * as capture from "./capture.mjs";
import * as edges from "./edges.mjs";
import * as enable from "./enable.mjs";
import * as browser from "./browser.mjs";
import * as figures from "./figures.mjs";
import * as gateway from "./gateway.mjs";
import * as lifecycle from "./lifecycle.mjs";
import * as metered from "./metered.mjs";
import * as roles from "./roles.mjs";
import * as servers from "./servers.mjs";

const wanted = process.argv.slice(2);
const steps = [capture, browser, enable, gateway, edges, metered, figures, servers, lifecycle, authenticated, roles]
  .flatMap(({ STEPS }) => STEPS.map((step) => [step.name, step]))
  .filter(([name]) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
const server = new Server();
let failed = 0;
server.install();
server.fresh();
try {
  await server.start();
  const world = await World.make(server);
  for (const [name, step] of steps) {
    const start = Date.now();
    try {
      const said = await step(world);
      console.log(`ok    ${name} (${Date.now() - start} ms)${said === undefined ? "" : `: ${said}`}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL  ${name} (${Date.now() - start} ms): ${error.stack}`);
    }
  }
} finally {
  await server.stop();
}
process.exit(failed === 0 ? 0 : 1);
