// A memhost that another program started: asks it whether it is there, and says when that changes.
import { saying, type Running } from "./client";

/** Where it is. */
export type Place = Omit<Running, "storeId">;

export class Elsewhere {
  private timer: NodeJS.Timeout | null = null;
  private is: string | null = null;
  private why: string | null = null;

  constructor(
    /** What it is called in messages. */
    readonly name: string,
    private readonly find: () => Promise<Place>,
    private readonly onUp: (running: Running) => void,
    private readonly onDown: (error: string) => void,
    private readonly everyMs = 5000,
  ) {}

  start(): void {
    void this.look();
    this.timer = setInterval(() => void this.look(), this.everyMs);
    this.timer.unref();
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }

  private async look(): Promise<void> {
    try {
      const place = await this.find();
      const answer = await fetch(`${place.runtime}/info`, { signal: AbortSignal.timeout(4000) });
      if (!answer.ok) throw new Error(`it answered ${answer.status}`);
      const { storeId } = (await answer.json()) as Running;
      // It may have been started again, with another address and token.
      const is = JSON.stringify(place);
      if (this.is === is || this.timer === null) return;
      this.is = is;
      this.why = null;
      this.onUp({ ...place, storeId });
    } catch (error) {
      const why = `${this.name} cannot be used: ${saying(error)}`;
      if (this.timer === null || this.why === why) return;
      this.is = null;
      this.why = why;
      this.onDown(why);
    }
  }
}
