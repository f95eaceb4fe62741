// Flat charges that somebody entered in memhost, such as a subscription: finance events in Paperclip, once each.
import type { Context } from "./context";
import { codeOf, orNull, type Entry } from "./entries";
import { clip } from "./capture/text";
import { must, type Schemas } from "./memhost/client";

type Charge = Schemas["FinanceEvent"];

/** Kinds and units that Paperclip knows; it refuses others. */
const KINDS = [
  "inference_charge",
  "platform_fee",
  "credit_purchase",
  "credit_refund",
  "credit_expiry",
  "byok_fee",
  "gateway_overhead",
  "log_storage_charge",
  "logpush_charge",
  "provisioned_capacity_charge",
  "training_charge",
  "custom_model_import_charge",
  "custom_model_storage_charge",
  "manual_adjustment",
];
const PAGE = 200;

/** Enters the charges that are not entered yet, oldest first. They are listed newest first, and those that are known end it. */
export async function enterCharges(
  plugin: Context,
  companyId: string,
  enter: (entry: Entry) => Promise<void>,
): Promise<void> {
  const { ctx, ledger, memory } = plugin;
  const found: Charge[] = [];
  for (let cursor: string | null = null; ; ) {
    const page: Schemas["FinanceEventPage"] = await must(
      memory.use.GET("/control/v1/companies/{company}/finance-events", {
        params: { path: { company: companyId }, query: { limit: PAGE, ...(cursor === null ? {} : { cursor }) } },
      }),
    );
    const known =
      page.items.length === 0
        ? []
        : await ctx.db.query<{ event_id: string }>(
            `SELECT event_id FROM ${ledger.namespace}.costs WHERE store = $1 AND event_id IN (SELECT jsonb_array_elements_text($2::jsonb))`,
            [ledger.store, JSON.stringify(page.items.map(({ id }) => id))],
          );
    const entered = new Set(known.map(({ event_id: id }) => id));
    found.push(...page.items.filter(({ id }) => !entered.has(id)));
    cursor = page.nextCursor ?? null;
    if (cursor === null || known.length > 0) break;
  }
  for (const charge of found.reverse())
    await enter({
      id: charge.id,
      form: "finance",
      account: "charges",
      cents: charge.amountCents,
      rest: 0,
      body: bodyOf(charge),
    });
}

function bodyOf(charge: Charge): Record<string, unknown> {
  const isKnown = KINDS.includes(charge.eventKind);
  return {
    agentId: null,
    issueId: orNull(charge.issueId),
    projectId: orNull(charge.projectId),
    heartbeatRunId: orNull(charge.heartbeatRunId),
    billingCode: codeOf(charge.id),
    eventKind: isKnown ? charge.eventKind : "platform_fee",
    direction: charge.direction,
    biller: charge.biller,
    provider: charge.provider ?? null,
    amountCents: charge.amountCents,
    currency: charge.currency,
    estimated: charge.estimated,
    externalInvoiceId: charge.externalInvoiceId ?? null,
    description: clip(charge.description ?? "Memory", 500),
    occurredAt: charge.occurredAt,
    metadataJson: {
      ...charge.metadataJson,
      memhostChargeId: charge.id,
      ...(isKnown ? {} : { eventKind: charge.eventKind }),
      ...(charge.agentId ? { agentId: charge.agentId } : {}),
      ...(charge.billingCode ? { billingCode: charge.billingCode } : {}),
    },
  };
}
