import { chatCommand } from "#console/lib/curl.ts";
import { Command, CopyButton } from "#console/parts/copy.tsx";
import { Dialog } from "#console/parts/dialog.tsx";
import { Exact } from "#console/parts/time.tsx";
import { Note } from "#console/parts/trouble.tsx";
import type { MintedKey } from "#generated/clients/typescript/src/rest.ts";

/** A new key, this once, with a call that uses it. */
export function NewKey({
  minted: { name, key, config_line, expires_at },
  close,
}: {
  minted: MintedKey;
  close: () => void;
}) {
  return (
    <Dialog title={`The key ${name}`} close={close} size="wide" isFirm>
      <Note tone="warning">Copy it now. The gateway keeps only its hash, so this key is never shown again.</Note>
      <div class="new-key">
        <output class="mono">{key}</output>
        <CopyButton text={key} what="Copy the key" label="Copy" />
      </div>
      <h3>A call with it</h3>
      <Command text={chatCommand(location.origin, { message: "Hello" }, key)} />
      {expires_at && (
        <p>
          It expires on <Exact at={expires_at} />.
        </p>
      )}
      <details>
        <summary>Keep it in the configuration</summary>
        <p class="hint">
          With the memory store a key ends when the gateway does. This line in <code>gateway.rest.auth.keys</code> keeps
          it; it has the hash, not the key.
        </p>
        <Command text={config_line} />
      </details>
      <div class="dialog-actions">
        <button type="button" class="button primary" onClick={close}>
          I have copied it
        </button>
      </div>
    </Dialog>
  );
}
