import type { ComponentChildren } from "preact";
import { rest } from "#console/app/api.ts";
import { chatCommand } from "#console/lib/curl.ts";
import { Command } from "#console/parts/copy.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Empty } from "#console/parts/page.tsx";
import { Failed } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";

type First = { title?: string; isLive: boolean; onSent: () => void; children?: ComponentChildren };

/** A page before the first request: one command, and a button that does the same. */
export function FirstRequest({ title = "No requests yet.", isLive, onSent, children }: First) {
  const action = useAction(async () => {
    await rest().chat.send({ message: "Hello from the console" });
    onSent();
  });
  return (
    <Empty title={title}>
      {children}
      <Command text={chatCommand(location.origin, { message: "Hello" })} />
      <ActionButton kind="primary" runs={action}>
        {action.isRunning.value ? "Sending…" : "Send a test message"}
      </ActionButton>
      <Failed of={action} />
      <p class="muted" role="status">
        {isLive ? "Waiting for the first request." : "Refresh after the first request."}
      </p>
    </Empty>
  );
}
