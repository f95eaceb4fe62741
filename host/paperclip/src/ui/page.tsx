// The page of a company's memory: how it is, what needs attention, search, and everything that is remembered.
import {
  usePluginAction,
  usePluginData,
  usePluginToast,
  useHostNavigation,
  type PluginPageProps,
} from "@paperclipai/plugin-sdk/ui";
import { useState, type ReactNode } from "react";
import { TROUBLES } from "../bounds";
import { QUERY_CHARACTERS } from "../capture/text";
import { Button, Card, Figure, INPUT, Quiet, said, Trouble, useAsked } from "./components";
import { ExplorerLink } from "./explorer";
import { Memories } from "./memories";
import { Note } from "./note";
import type { Overview, Shown } from "./shapes";

export const remembered = (overview: Overview, kind: string): number =>
  overview.counts.filter((count) => count.kind === kind && count.status === "sent").reduce((sum, { n }) => sum + n, 0);
export const cents = (value: number): string => `$${(value / 100).toFixed(2)}`;

export const monthly = ({ costs }: Overview): string =>
  costs === null || costs.monthCents === null ? "not known" : cents(costs.monthCents);
const hasReviews = ({ reviews, hasMoreReviews }: Overview): boolean =>
  reviews !== null && (reviews > 0 || hasMoreReviews);

export function MemoryPage({ context }: PluginPageProps) {
  const companyId = context.companyId;
  const { data, error, loading, refresh } = usePluginData<Overview>("overview", { companyId });
  const [changes, setChanges] = useState(0);
  const changed = (): void => {
    setChanges((before) => before + 1);
    refresh();
  };
  if (companyId === null) return <Quiet>Choose a company to see its memory.</Quiet>;
  if (error !== null) return <Trouble>{error.message}</Trouble>;
  if (data === null) return <Quiet>{loading ? "Reading memory…" : "There is nothing to show."}</Quiet>;
  const known = (value: ReactNode): ReactNode => (data.isCounted ? value : "not known");
  return (
    <div className="space-y-4" style={{ maxWidth: 960 }}>
      <div className="flex items-center justify-between gap-2">
        <h1 className="text-lg font-semibold">Memory</h1>
        <ExplorerLink address={data.explorer} companyId={companyId} />
      </div>
      {data.health.status === "ok" ? null : <Trouble>{data.health.message}</Trouble>}
      <div className="grid grid-cols-2 sm:grid-cols-4 gap-2">
        <Figure label="Comments" value={known(remembered(data, "comment"))} />
        <Figure label="Runs" value={known(remembered(data, "run"))} />
        <Figure label="Documents" value={known(data.isConfigured ? remembered(data, "document") : "after Enable")} />
        <Figure label="Cost this month" value={monthly(data)} />
      </div>
      <Attention companyId={companyId} overview={data} onChanged={refresh} />
      <Search companyId={companyId} onChanged={changed} />
      <Note companyId={companyId} agents={data.agents} onChanged={changed} />
      <Everything companyId={companyId} changes={changes} onChanged={changed} />
      <Recalls overview={data} />
    </div>
  );
}

function Attention({
  companyId,
  overview,
  onChanged,
}: {
  companyId: string;
  overview: Overview;
  onChanged: () => void;
}) {
  const retry = usePluginAction("retry");
  const backfill = usePluginAction("backfill");
  const toast = usePluginToast();
  const act = (action: ReturnType<typeof usePluginAction>): void =>
    void action({ companyId }).then(onChanged, (error: unknown) => toast({ title: said(error), tone: "error" }));
  const navigation = useHostNavigation();
  const waiting = overview.backlog.filter(
    ({ kind, count }) => count > 0 && (kind !== "document" || overview.isConfigured),
  );
  const nothing =
    overview.attention.length === 0 &&
    overview.held === null &&
    !hasReviews(overview) &&
    waiting.length === 0 &&
    (overview.enabled !== null || !overview.isCounted) &&
    !overview.costs?.error;
  if (nothing) return null;
  return (
    <Card
      title="Needs attention"
      aside={overview.attention.length === 0 ? null : <Button onClick={() => act(retry)}>Try again</Button>}
    >
      <ul style={{ display: "grid", gap: 6 }}>
        {overview.enabled === null && overview.isCounted ? (
          <li>
            {overview.isConfigured
              ? "Comments, runs and documents are remembered. The agents' tools and the skill begin with Enable"
              : "Comments and runs are remembered. Documents, the agents' tools, the skill and costs begin with Enable"}
            , in the{" "}
            <a className="underline" {...navigation.linkProps("/company/settings/instance/plugins")}>
              plugin&apos;s settings
            </a>
            .
          </li>
        ) : null}
        {overview.held === null ? null : <li>This company waits: {overview.held}</li>}
        {hasReviews(overview) ? (
          <li>
            Waiting for a decision in the explorer: {overview.reviews}
            {overview.hasMoreReviews ? " or more" : ""}
          </li>
        ) : null}
        {overview.costs?.error ? <li>Costs are not entered yet: {overview.costs.error}</li> : null}
        {waiting.map(({ kind, count, bytes }) => (
          <li key={kind}>
            {count} {kind}
            {count === 1 ? "" : "s"}
            {bytes > 0 ? ` (${Math.ceil(bytes / 1024)} KiB)` : ""}{" "}
            {overview.backfill.waits ? "not taken in" : "being taken in"}.
          </li>
        ))}
        {overview.backfill.waits ? (
          <li className="flex items-center gap-2 flex-wrap">
            <span>
              Memory of this company costs money, so what was written before is taken in only when you say so.{" "}
              {overview.backfill.estimateCents === null
                ? "What it will cost is not known yet"
                : `It will cost about ${cents(overview.backfill.estimateCents)}`}
              .
            </span>
            <Button onClick={() => act(backfill)}>Take in the past</Button>
          </li>
        ) : null}
        {overview.attention.length < TROUBLES ? null : <li>There may be more than these {TROUBLES}:</li>}
        {overview.attention.map((item) => (
          <li key={`${item.kind} ${item.source_id}`}>
            A {item.kind} {item.status === "refused" ? "was refused" : "waits"}: {item.error}
          </li>
        ))}
      </ul>
    </Card>
  );
}

interface Found {
  id: string;
  skipped: string | null;
  memories: Shown[];
}

function Search({ companyId, onChanged }: { companyId: string; onChanged: () => void }) {
  const [query, setQuery] = useState("");
  const [marked, setMarked] = useState<string | null>(null);
  const found = useAsked<Found>("search", { companyId });
  const mark = usePluginAction("mark");
  const [asked, setAsked] = useState("");
  const ask = (query: string): void => {
    setMarked(null);
    setAsked(query);
    if (query.trim() !== "") void found.ask({ query });
  };
  const say = (helpful: boolean): void =>
    void mark({ companyId, recallId: found.data?.id, helpful }).then(
      () => setMarked(helpful ? "Marked as helpful." : "Marked as not helpful."),
      (error: unknown) => setMarked(`Not marked: ${said(error)}`),
    );
  return (
    <Card title="Search">
      <form
        className="flex items-center gap-2"
        style={{ marginBottom: 12 }}
        onSubmit={(event) => {
          event.preventDefault();
          ask(query);
        }}
      >
        <input
          className={INPUT}
          style={{ flex: 1 }}
          value={query}
          aria-label="Search memory"
          maxLength={QUERY_CHARACTERS}
          placeholder="What does the company remember about…"
          onChange={(event) => setQuery(event.target.value)}
        />
        <Button tone="main" disabled={found.loading || query.trim() === ""}>
          Search
        </Button>
      </form>
      {found.error === null ? null : <Trouble>{found.error}</Trouble>}
      {found.data === null || found.error !== null ? null : found.data.skipped !== null ? (
        <Quiet>Nothing was found: {found.data.skipped}.</Quiet>
      ) : (
        <>
          <Memories
            companyId={companyId}
            memories={found.data.memories}
            onChanged={() => {
              ask(asked);
              onChanged();
            }}
          />
          <div className="flex items-center gap-2" style={{ marginTop: 8 }}>
            {marked === null ? (
              <>
                <Quiet>Did this help?</Quiet>
                <Button onClick={() => say(true)}>Helpful</Button>
                <Button onClick={() => say(false)}>Not helpful</Button>
              </>
            ) : (
              <Quiet>{marked}</Quiet>
            )}
          </div>
        </>
      )}
    </Card>
  );
}

/** `changes` counts the changes made on this page; each has the list read again. */
function Everything({ companyId, changes, onChanged }: { companyId: string; changes: number; onChanged: () => void }) {
  const [cursor, setCursor] = useState<string | null>(null);
  const page = useAsked<{ memories: Shown[]; cursor: string | null }>(
    "browse",
    { companyId, ...(cursor === null ? {} : { cursor }) },
    true,
    changes,
  );
  return (
    <Card title="Everything that you may read">
      {page.error === null ? null : <Trouble>{page.error}</Trouble>}
      {page.data === null ? (
        <Quiet>{page.loading ? "Reading…" : ""}</Quiet>
      ) : page.data.memories.length === 0 ? (
        <Quiet>
          {cursor === null
            ? "Nothing is remembered yet. A new comment appears here within seconds; reload the page to see it."
            : "There is nothing more."}
        </Quiet>
      ) : (
        <Memories companyId={companyId} memories={page.data.memories} onChanged={onChanged} />
      )}
      <div className="flex gap-2" style={{ marginTop: 8 }}>
        {cursor === null ? null : <Button onClick={() => setCursor(null)}>From the beginning</Button>}
        {page.data?.cursor ? <Button onClick={() => setCursor(page.data?.cursor ?? null)}>More</Button> : null}
      </div>
    </Card>
  );
}

/** Who asked, in the words of the pages. */
export const WAYS: Record<string, string> = {
  page: "a person on the memory page",
  route: "the skill or the API",
  tool: "an agent's tool",
};

function Recalls({ overview }: { overview: Overview }) {
  if (overview.recalls.length === 0) return null;
  return (
    <Card title="Lately recalled">
      <ul style={{ display: "grid", gap: 4 }}>
        {overview.recalls.map((recall) => (
          <li key={recall.id}>
            {new Date(recall.at).toLocaleString()} · {WAYS[recall.way] ?? recall.way} ·{" "}
            {recall.skipped === null ? `${recall.found} found` : `nothing: ${recall.skipped}`}
          </li>
        ))}
      </ul>
    </Card>
  );
}
