import createClient, { type Client } from "openapi-fetch";

import type { components, paths } from "./openapi.js";

export type { components, operations, paths } from "./openapi.js";

/** The types of the document by name, such as `Schemas["Scope"]`. */
export type Schemas = components["schemas"];

/** A client of one host. Every path of the document is typed. */
export type Memhost = Client<paths>;

/** A client of the host at `baseUrl`, whose requests carry `token`. */
export function memhost(baseUrl: string, token: string): Memhost {
  return createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });
}
