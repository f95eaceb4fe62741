// The way to the explorer, only where this browser reaches memhost; the page shows the same things without it.
import { usePluginAction, usePluginToast } from "@paperclipai/plugin-sdk/ui";
import { useEffect, useState } from "react";
import { Button, said } from "./components";

const isHere = (name: string): boolean => name === "127.0.0.1" || name === "localhost" || name === "[::1]";

export function ExplorerLink({ address, companyId }: { address: string | null; companyId: string }) {
  const [reaches, setReaches] = useState(false);
  const explorer = usePluginAction("explorer");
  const toast = usePluginToast();
  useEffect(() => {
    setReaches(false);
    if (address === null) return;
    if (isHere(new URL(address).hostname) && !isHere(window.location.hostname)) return;
    let current = true;
    fetch(`${address}/healthz`, { mode: "no-cors" }).then(
      () => current && setReaches(true),
      () => undefined,
    );
    return () => {
      current = false;
    };
  }, [address]);
  if (!reaches) return null;
  const open = async (): Promise<void> => {
    // A tab that is opened after a wait is taken for an advertisement.
    const tab = window.open("", "_blank");
    if (tab !== null) tab.opener = null;
    try {
      const { url } = (await explorer({ companyId })) as { url: string };
      if (tab === null) window.location.assign(url);
      else tab.location.replace(url);
    } catch (error) {
      tab?.close();
      toast({ title: said(error), tone: "error" });
    }
  };
  return <Button onClick={() => void open()}>Open the explorer</Button>;
}
