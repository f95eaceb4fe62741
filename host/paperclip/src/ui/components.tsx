// Small pieces in Paperclip's look: its classes and its colours.
import { usePluginAction } from "@paperclipai/plugin-sdk/ui";
import { useCallback, useEffect, useState, type CSSProperties, type ReactNode } from "react";

/** The look of a text field; its ring shows that it has the focus. */
export const INPUT =
  "h-8 px-3 rounded-md border border-input bg-transparent text-sm shadow-xs outline-none focus-visible:border-ring focus-visible:ring-3 focus-visible:ring-ring/50";

export function Card({ title, children, aside }: { title?: string; children: ReactNode; aside?: ReactNode }) {
  return (
    <section className="rounded-lg border border-border bg-card p-4 text-sm" style={{ color: "var(--foreground)" }}>
      {title === undefined ? null : (
        <header className="flex items-center justify-between gap-2" style={{ marginBottom: 12 }}>
          <h3 className="text-sm font-medium">{title}</h3>
          {aside}
        </header>
      )}
      {children}
    </section>
  );
}

export function Button({
  onClick,
  children,
  tone = "plain",
  disabled = false,
}: {
  onClick?: () => void;
  children: ReactNode;
  tone?: "plain" | "main" | "danger";
  disabled?: boolean;
}) {
  const colours: CSSProperties =
    tone === "main"
      ? { background: "var(--primary)", color: "var(--primary-foreground)", borderColor: "var(--primary)" }
      : tone === "danger"
        ? { color: "var(--destructive)" }
        : {};
  return (
    <button
      type={onClick === undefined ? "submit" : "button"}
      onClick={onClick}
      disabled={disabled}
      className="h-8 px-3 rounded-md border border-border text-sm font-medium"
      style={{ opacity: disabled ? 0.5 : 1, ...colours }}
    >
      {children}
    </button>
  );
}

export function Field({
  label,
  help,
  ...input
}: {
  label: string;
  help?: string;
  value: string;
  onChange: (value: string) => void;
  type?: string;
  placeholder?: string;
}) {
  return (
    <label className="text-sm" style={{ display: "grid", gap: 4 }}>
      <span className="font-medium">{label}</span>
      <input
        className={INPUT}
        type={input.type ?? "text"}
        value={input.value}
        placeholder={input.placeholder}
        autoComplete="off"
        onChange={(event) => input.onChange(event.target.value)}
      />
      {help === undefined ? null : <Quiet>{help}</Quiet>}
    </label>
  );
}

export const Quiet = ({ children }: { children: ReactNode }) => (
  <span className="text-xs text-muted-foreground" style={{ overflowWrap: "anywhere" }}>
    {children}
  </span>
);

export function Trouble({ children }: { children: ReactNode }) {
  return (
    <p
      role="alert"
      className="rounded-md border border-border p-3 text-sm"
      style={{ borderColor: "var(--destructive)", color: "var(--destructive)" }}
    >
      {children}
    </p>
  );
}

export function Figure({ label, value }: { label: string; value: ReactNode }) {
  return (
    <div className="rounded-lg border border-border bg-card p-4">
      <div className="text-xs text-muted-foreground">{label}</div>
      <div className="tabular-nums font-medium" style={{ fontSize: 20, marginTop: 4 }}>
        {value}
      </div>
    </div>
  );
}

export const said = (error: unknown): string =>
  error instanceof Error
    ? error.message
    : typeof error === "object" && error !== null && "message" in error
      ? String(error.message)
      : String(error);

export interface Asked<T> {
  data: T | null;
  error: string | null;
  loading: boolean;
  ask(more?: Record<string, unknown>): Promise<T | null>;
}

/**
 * An action whose answer is shown. With `atOnce` it is asked when the panel opens, and again when its parameters or
 * `changes` change.
 */
export function useAsked<T>(key: string, params: Record<string, unknown>, atOnce = false, changes = 0): Asked<T> {
  const act = usePluginAction(key);
  const [state, setState] = useState<{ data: T | null; error: string | null; loading: boolean }>({
    data: null,
    error: null,
    loading: atOnce,
  });
  const fixed = JSON.stringify(params);
  const ask = useCallback(
    async (more: Record<string, unknown> = {}) => {
      setState((before) => ({ ...before, loading: true, error: null }));
      try {
        const data = (await act({ ...(JSON.parse(fixed) as Record<string, unknown>), ...more })) as T;
        setState({ data, error: null, loading: false });
        return data;
      } catch (error) {
        setState((before) => ({ ...before, error: said(error), loading: false }));
        return null;
      }
      // The host makes a new function for each rendering.
      // eslint-disable-next-line react-hooks/exhaustive-deps
    },
    [key, fixed],
  );
  useEffect(() => {
    if (atOnce) void ask();
  }, [ask, atOnce, changes]);
  return { ...state, ask };
}
