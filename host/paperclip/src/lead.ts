// Which of several Paperclip servers on one database serves memory, and takes in what is new: the one that holds a lease.
import { hostname } from "node:os";
import type { Host } from "./paperclip/host";

/** How long a server that does not answer keeps the others waiting, in seconds. */
const LEASE_SECONDS = 30;

export interface Leading {
  isOurs: boolean;
  /** The machine of the server that leads. */
  machine: string;
}

const machineOf = (holder: string): string => holder.slice(0, holder.lastIndexOf(" "));

/** Whether a worker of this machine has ended: nobody waits for its lease. */
function hasEnded(holder: string): boolean {
  if (machineOf(holder) !== hostname()) return false;
  try {
    process.kill(Number(holder.slice(holder.lastIndexOf(" ") + 1)), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}

export class Lead {
  /** Whether the worker that had the lease before ended without giving it up; known after the first question. */
  wasLeft = false;
  private readonly table: string;
  private hasAsked = false;

  constructor(
    private readonly host: Host,
    /** The machine and the process id. */
    private readonly own = `${hostname()} ${process.pid}`,
  ) {
    this.table = `${host.db.namespace}.lead`;
  }

  /** Takes or keeps the lease where nobody else has it. */
  async ask(): Promise<Leading> {
    const lease = await this.lease();
    const known = lease?.holds === true ? lease.holder : null;
    if (!this.hasAsked)
      this.wasLeft = lease !== undefined && lease.holder !== "" && (!lease.holds || hasEnded(lease.holder));
    this.hasAsked = true;
    const isFree = known === null || known === this.own || hasEnded(known);
    if (isFree)
      await this.host.db.execute(
        `INSERT INTO ${this.table} AS l (one, holder, until) VALUES (true, $1, now() + make_interval(secs => $2))
         ON CONFLICT (one) DO UPDATE SET holder = excluded.holder, until = excluded.until
         WHERE l.holder IN ($1, $3) OR l.until < now()`,
        [this.own, LEASE_SECONDS, known ?? ""],
      );
    const holder = isFree ? ((await this.lease())?.holder ?? this.own) : known;
    return { isOurs: holder === this.own, machine: machineOf(holder) };
  }

  /** Gives it up, so that another server goes on at once. */
  async release(): Promise<void> {
    await this.host.db.execute(`UPDATE ${this.table} SET until = now(), holder = '' WHERE holder = $1`, [this.own]);
  }

  /** Who had the lease last, and whether it still holds. The name is empty after it was given up. */
  private async lease(): Promise<{ holder: string; holds: boolean } | undefined> {
    const [row] = await this.host.db.query<{ holder: string; holds: boolean }>(
      `SELECT holder, until > now() AS holds FROM ${this.table}`,
      [],
    );
    return row;
  }
}
