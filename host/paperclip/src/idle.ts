// Gives memory back that a busy time has left. Node collects what is garbage only when it needs more memory, so a worker that
// has read ten thousand rows and then rests would keep them for good.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** How often it looks, in milliseconds. */
const EVERY_MS = 15_000;
/** Processor time within that, in microseconds, below which the worker rests. */
const RESTS_US = 300_000;
/** Processor time since memory was last given back, from which it is worth it again. */
const WORTH_IT_US = 300_000;

type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void;

/** When a process that has spent so much processor time gives memory back: once after each busy time. */
export class Idle {
  private last = 0;
  private givenBack = 0;

  /** `spent`: the processor time of this process in microseconds, which only grows. */
  shouldGiveBack(spent: number): boolean {
    const rests = spent - this.last < RESTS_US;
    this.last = spent;
    if (!rests || spent - this.givenBack < WORTH_IT_US) return false;
    this.givenBack = spent;
    return true;
  }
}

function collector(): Collect | null {
  try {
    setFlagsFromString("--expose-gc");
    return runInNewContext("gc") as Collect;
  } catch {
    return null;
  }
}

/** Looks as long as the process lives, without keeping it alive. */
export function giveBackWhenIdle(): void {
  const collect = collector();
  if (collect === null) return;
  const idle = new Idle();
  const look = (): void => {
    const { user, system } = process.cpuUsage();
    if (idle.shouldGiveBack(user + system)) collect({ type: "major", execution: "sync", flavor: "last-resort" });
  };
  setInterval(look, EVERY_MS).unref();
}
