// Calls of memhost, typed by its OpenAPI document.
import createClient from "openapi-fetch";
import type { components, paths } from "../generated/openapi";

export type Schemas = components["schemas"];
export type Client = ReturnType<typeof createClient<paths>>;

/** Where memhost is and who asks it. */
export interface Address {
  runtime: string;
  control: string;
  token: string;
}

/** A running memhost. */
export interface Running extends Address {
  storeId: string;
  /** 0: it runs on another machine, or is nobody's child. */
  pid: number;
}

/** A call that memhost refused, or that did not reach it (status 0). */
export class MemhostError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly field: string | null = null,
  ) {
    super(detail);
  }
  /** Whether the same call can succeed later. */
  get passes(): boolean {
    return (
      this.status === 0 ||
      this.status >= 500 ||
      this.status === 429 ||
      this.status === 402 ||
      this.status === 401 ||
      this.code === "importing"
    );
  }
}

/** A client for both planes: the path says which. */
export function connect(address: Address, timeoutMs = 25_000): Client {
  const client = createClient<paths>({
    baseUrl: address.runtime,
    fetch: (request) => {
      const { pathname, search } = new URL(request.url);
      const base = pathname.startsWith("/control/") ? address.control : address.runtime;
      const target = new URL(base.replace(/\/$/, "") + pathname + search);
      return fetch(new Request(target, request), { signal: AbortSignal.timeout(timeoutMs) });
    },
  });
  client.use({
    onRequest({ request }) {
      request.headers.set("authorization", `Bearer ${address.token}`);
      return request;
    },
  });
  return client;
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of an answer, or a MemhostError. */
export async function must<T>(asked: Promise<Answer<T>>): Promise<NonNullable<T>> {
  let answer: Answer<T>;
  try {
    answer = await asked;
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
    throw new MemhostError(
      0,
      "unreachable",
      `memhost does not answer (${error instanceof Error ? error.message : String(error)}${cause})`,
    );
  }
  if (answer.response.ok && answer.data !== undefined && answer.data !== null) return answer.data;
  const problem = (answer.error ?? {}) as Partial<Schemas["Problem"]>;
  throw new MemhostError(
    answer.response.status,
    problem.code ?? "unknown",
    problem.detail ?? problem.title ?? `memhost answered ${answer.response.status}`,
    problem.field ?? null,
  );
}

/** What a person reads of an error. */
export function saying(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
