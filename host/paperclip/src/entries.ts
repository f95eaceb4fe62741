// What is entered in Paperclip's ledgers of costs.
import { isId } from "./paperclip/runs";

export type Form = "cost" | "finance";

/** What is entered in Paperclip once. */
export interface Entry {
  id: string;
  form: Form;
  account: string;
  cents: number;
  rest: number;
  body: Record<string, unknown>;
}

/** The billing code by which an entry is found again. */
export const codeOf = (id: string): string => `memhost:${id}`;
export const orNull = (id: string | null | undefined): string | null => (isId(id) ? id : null);
