// A stand-in for Paperclip and one for memhost, with the plugin's memory and ledger between them.
import { Ledger } from "../../src/ledger";
import { Memory } from "../../src/memory";
import { FakeHost } from "./host";
import { FakeMemhost } from "./memhost";

export interface Room {
  fake: FakeHost;
  memhost: FakeMemhost;
  memory: Memory;
  ledger: Ledger;
}

/** Memory is up, and the ledger is about the store `store-1`. */
export async function room(): Promise<Room> {
  const [fake, memhost] = await Promise.all([FakeHost.make(), new FakeMemhost().start()]);
  const memory = new Memory();
  memory.up(memhost.address);
  const ledger = new Ledger(fake.host);
  await ledger.use("store-1", "/nowhere");
  return { fake, memhost, memory, ledger };
}
