// A memhost that runs elsewhere: asks it whether it is there, and says when that changes.
import type { Running } from "./process";
import { saying } from "./client";

interface Info {
  storeId: string;
  version: string;
}

export class Elsewhere {
  private timer: NodeJS.Timeout | null = null;
  private is: boolean | null = null;
  private why = "";

  constructor(
    readonly url: string,
    private readonly token: () => Promise<string>,
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
      const answer = await fetch(`${this.url}/info`, { signal: AbortSignal.timeout(4000) });
      if (!answer.ok) throw new Error(`it answered ${answer.status}`);
      const { storeId } = (await answer.json()) as Info;
      if (this.is === true || this.timer === null) return;
      const token = await this.token();
      this.is = true;
      this.onUp({ runtime: this.url, control: this.url, token, storeId, pid: 0 });
    } catch (error) {
      const why = `the memhost at ${this.url} cannot be used: ${saying(error)}`;
      if (this.timer === null || (this.is === false && this.why === why)) return;
      this.is = false;
      this.why = why;
      this.onDown(why);
    }
  }
}
