// The dashboard's widget, the issue's panel and the link in the sidebar.
import {
  usePluginData,
  useHostNavigation,
  type PluginDetailTabProps,
  type PluginSidebarProps,
  type PluginWidgetProps,
} from "@paperclipai/plugin-sdk/ui";
import { TROUBLES, USED } from "../bounds";
import { Card, Quiet, Trouble, useAsked } from "./components";
import { Memories } from "./memories";
import { monthly, remembered, WAYS } from "./page";
import type { Overview, RecallRow, Shown } from "./shapes";

const some = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

export function MemoryLink({ context }: PluginSidebarProps) {
  const navigation = useHostNavigation();
  if (context.companyId === null) return null;
  return (
    <a
      className="flex items-center gap-2.5 py-2 text-[13px] font-medium transition-colors text-foreground/80 rounded-md"
      // As far in as the links beside it.
      style={{ paddingLeft: 16, paddingRight: 12 }}
      {...navigation.linkProps("/memory")}
    >
      <svg
        width="16"
        height="16"
        viewBox="0 0 24 24"
        fill="none"
        stroke="currentColor"
        strokeWidth="2"
        aria-hidden="true"
      >
        <path d="M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3Zm0 0v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3" />
      </svg>
      Memory
    </a>
  );
}

/** The page's address. On the dashboard Paperclip may not say the company's prefix; the address there has it. */
const memoryOf = ({ companyPrefix }: PluginWidgetProps["context"]): string =>
  companyPrefix ? "/memory" : `/${window.location.pathname.split("/")[1] ?? ""}/memory`;

export function MemoryWidget({ context }: PluginWidgetProps) {
  const { data, error } = usePluginData<Overview>("overview", { companyId: context.companyId });
  const navigation = useHostNavigation();
  if (error !== null) return <Trouble>Memory: {error.message}</Trouble>;
  if (data === null) return <Quiet>Reading memory…</Quiet>;
  const total = ["comment", "run", "document"].reduce((sum, kind) => sum + remembered(data, kind), 0);
  const attention = data.attention.length + (data.reviews ?? 0);
  return (
    <div className="text-sm" style={{ display: "grid", gap: 8 }}>
      {data.health.status === "ok" ? null : <Trouble>{data.health.message}</Trouble>}
      <div className="text-xs text-muted-foreground">Memory</div>
      <div className="tabular-nums font-medium" style={{ fontSize: 20 }}>
        {data.isCounted ? `${total} remembered` : "not known while memory is down"}
      </div>
      {data.isCounted ? (
        <Quiet>
          {some(remembered(data, "comment"), "comment")}, {some(remembered(data, "run"), "run")},{" "}
          {some(remembered(data, "document"), "document")} · {monthly(data)} this month
        </Quiet>
      ) : null}
      {attention === 0 && !data.hasMoreReviews ? null : (
        <Quiet>
          {attention}
          {data.hasMoreReviews || data.attention.length === TROUBLES ? " or more" : ""} need attention
        </Quiet>
      )}
      <a className="text-sm underline" {...navigation.linkProps(memoryOf(context))}>
        Open memory
      </a>
    </div>
  );
}

export function MemoryOfIssue({ context }: PluginDetailTabProps) {
  const companyId = context.companyId ?? "";
  const panel = useAsked<{ made: Shown[]; hasMore: boolean; used: RecallRow[] }>(
    "issue",
    { companyId, issueId: context.entityId },
    true,
  );
  if (panel.error !== null) return <Trouble>{panel.error}</Trouble>;
  if (panel.data === null) return <Quiet>Reading memory…</Quiet>;
  const { made, hasMore, used } = panel.data;
  const found = used.filter(({ skipped }) => skipped === null).length;
  return (
    <details className="text-sm">
      <summary className="text-sm font-medium" style={{ cursor: "pointer" }}>
        Memory{" "}
        <Quiet>
          {hasMore ? `${made.length} memories or more` : some(made.length, "memory").replace("memorys", "memories")} of
          this task, recalled {used.length === USED ? `${found} times or more` : some(found, "time")}
        </Quiet>
      </summary>
      <div className="space-y-4" style={{ marginTop: 12 }}>
        <Card title="Made by this task">
          {made.length === 0 ? (
            <Quiet>Nothing yet: a comment, a run or a document makes the first memory.</Quiet>
          ) : (
            <Memories companyId={companyId} memories={made} onChanged={() => void panel.ask()} />
          )}
        </Card>
        <Card title="Used by this task">
          {used.length === 0 ? (
            <Quiet>Nothing was recalled for it yet.</Quiet>
          ) : (
            <ul style={{ display: "grid", gap: 4 }}>
              {used.map((recall) => (
                <li key={recall.id}>
                  {new Date(recall.at).toLocaleString()} ·{" "}
                  {recall.skipped === null
                    ? `${recall.found} recalled by ${WAYS[recall.way] ?? recall.way}`
                    : `nothing: ${recall.skipped}`}
                </li>
              ))}
            </ul>
          )}
        </Card>
      </div>
    </details>
  );
}
