// A stand-in for memhost that keeps what it gets. It refuses paths that the OpenAPI document does not have.
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { readFileSync } from "node:fs";
import type { HookEvent } from "../../src/capture/hooks";
import type { Address, Schemas } from "../../src/memhost/client";

const DOCUMENT = JSON.parse(
  readFileSync(new URL("../../../../tests/tests/it/snapshots/openapi.json", import.meta.url), "utf8"),
) as { paths: Record<string, Record<string, unknown>> };
const PATHS = Object.entries(DOCUMENT.paths).map(([path, methods]) => ({
  pattern: new RegExp(`^${path.replace(/\{[^}]+\}/g, "[^/]+")}$`),
  methods: Object.keys(methods),
}));

interface Call {
  method: string;
  path: string;
  query: URLSearchParams;
  company: string;
  body: Record<string, unknown>;
  headers: IncomingMessage["headers"];
}

export class FakeMemhost {
  readonly calls: Call[] = [];
  readonly events: (HookEvent & { company: string })[] = [];
  recalled = "- known";
  profile: string | undefined = undefined;
  readonly forgotten: { company: string; sources: Record<string, unknown>[] }[] = [];
  readonly erased: string[] = [];
  bindings: Record<string, unknown>[] = [
    {
      key: "default",
      isDefault: true,
      providerKey: "local-markdown",
      grants: { http: [] },
      policy: { hooks: [{ kind: "post_run_capture", when: "active" }] },
    },
  ];
  budgets: Record<string, unknown>[] = [];
  costs: Partial<Schemas["CostEvent"]>[] = [];
  /** Oldest first; they are listed newest first. */
  charges: Partial<Schemas["FinanceEvent"]>[] = [];
  /** What happens instead of the answer: a status, or a problem. */
  trouble: ((call: Call) => { status: number; body: unknown } | null) | null = null;
  /** It is killed in the next batch after so many of its events, which are durable by then. */
  diesAfter: number | null = null;
  outcome: (event: HookEvent) => Record<string, unknown> = () => ({});
  private server: Server | null = null;
  address: Address = { runtime: "", control: "", token: "mh_test" };

  async start(): Promise<this> {
    this.server = createServer(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const url = new URL(request.url ?? "/", "http://x");
      const text = Buffer.concat(parts).toString("utf8");
      const call: Call = {
        method: request.method ?? "GET",
        path: url.pathname,
        query: url.searchParams,
        company: url.pathname.split("/")[4] ?? "",
        body: text === "" ? {} : JSON.parse(text),
        headers: request.headers,
      };
      this.calls.push(call);
      const known =
        PATHS.some(
          ({ pattern, methods }) => pattern.test(url.pathname) && methods.includes(call.method.toLowerCase()),
        ) || url.pathname === "/sign-in/link";
      const answered = !known
        ? { status: 404, body: { code: "no_route", detail: `${call.method} ${url.pathname} is not in the document` } }
        : (this.trouble?.(call) ?? null);
      if (call.path.endsWith("/hooks/batch") && this.diesAfter !== null) {
        this.answer({ ...call, body: { events: (call.body.events as HookEvent[]).slice(0, this.diesAfter) } });
        this.diesAfter = null;
        return request.socket.destroy();
      }
      const { status, body } = answered ?? { status: 200, body: this.answer(call) };
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => this.server?.listen(0, "127.0.0.1", resolve));
    const base = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    this.address = { runtime: base, control: base, token: "mh_test" };
    return this;
  }

  stop(): void {
    this.server?.closeAllConnections();
    this.server?.close();
  }

  texts(company: string): string[] {
    return this.events.filter((event) => event.company === company).map((event) => event.payload?.text ?? "");
  }

  private answer({ path, query, company, body }: Call): unknown {
    if (path.endsWith("/hooks/batch")) {
      const results = (body.events as HookEvent[]).map((event, index) => {
        const special = this.outcome(event);
        if (special.outcome !== undefined) return { index, ...special };
        if (this.events.some((known) => known.company === company && known.hookId === event.hookId))
          return { index, outcome: "duplicate" };
        this.events.push({ ...event, company });
        return { index, outcome: "accepted" };
      });
      return { accepted: 0, duplicates: 0, notTaken: 0, refused: 0, results };
    }
    if (path.endsWith("/sources/forget")) {
      this.forgotten.push({ company, sources: body.sources as Record<string, unknown>[] });
      return { isComplete: true, bindings: [] };
    }
    if (path.endsWith("/erase")) return { erased: this.erased.push(company) };
    if (path.endsWith("/cost-events")) {
      const from = Number(query.get("cursor") ?? 0);
      return {
        items: this.costs.slice(from, from + 2),
        nextCursor: String(Math.min(from + 2, this.costs.length)),
        more: from + 2 < this.costs.length,
      };
    }
    if (path.endsWith("/finance-events")) {
      const from = Number(query.get("cursor") ?? 0);
      return {
        items: this.charges.toReversed().slice(from, from + 2),
        nextCursor: from + 2 < this.charges.length ? String(from + 2) : undefined,
      };
    }
    if (path.endsWith("/budgets")) return { items: this.budgets };
    if (path.endsWith("/query"))
      return {
        operationId: "o",
        profileSummary: this.profile,
        snippets: [
          { handle: { providerKey: "local-markdown", providerRecordId: "r1" }, text: `about ${String(body.query)}` },
        ],
      };
    if (path.endsWith("/hooks"))
      return {
        hookId: "h",
        isDuplicate: false,
        deliveries: [],
        context: { text: this.recalled, included: 1, omitted: 0, tokens: 2, tokenBudget: 500 },
      };
    if (path.endsWith("/records"))
      return { operationId: "o", records: [{ providerKey: "local-markdown", providerRecordId: "r2" }] };
    if (path.endsWith("/forget")) return { operationId: "o", outcomes: [] };
    if (path === "/sign-in/link") return { path: "/sign-in?link=once" };
    if (path.endsWith("/tokens")) return { id: "t1", value: "mh_integration" };
    if (path.endsWith("/bindings")) return { items: this.bindings };
    if (path.includes("/bindings/"))
      return { key: "default", policy: { hooks: [{ kind: "post_run_capture", when: "active" }] } };
    return {};
  }
}
