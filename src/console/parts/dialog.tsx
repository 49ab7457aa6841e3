import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ActionButton, type ButtonOf } from "./fields.tsx";
import { Failed } from "./trouble.tsx";
import { useAction } from "./use.ts";

type DialogOf = {
  title: string;
  close: () => void;
  /** Only its buttons close it: what it shows is not shown again. */
  isFirm?: boolean;
  size?: "" | "wide" | "huge" | "wide palette";
  children: ComponentChildren;
};

/** A native dialog, open as long as it is there. Escape and the ground around it close it, but where it is `isFirm`. */
export function Dialog({ title, close, size = "", isFirm = false, children }: DialogOf) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    return () => before?.focus?.();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={size}
      aria-label={title}
      onClose={close}
      onCancel={(event) => {
        event.preventDefault();
        if (!isFirm) close();
      }}
      onMouseDown={(event) => event.target === dialog.current && !isFirm && close()}
    >
      <div class="stack dialog-body">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

type Confirmation = {
  title: string;
  /** The effect, in words. */
  children: ComponentChildren;
  /** The words on the button that does it. */
  act: string;
  run: () => Promise<unknown>;
  close: () => void;
  isDanger?: boolean;
};

/** Asks before something is done that cannot be undone, or that starts work. */
export function Confirm({ title, children, act, run, close, isDanger = false }: Confirmation) {
  const action = useAction(async () => {
    await run();
    close();
  });
  return (
    <Dialog title={title} close={close}>
      {children}
      <Failed of={action} />
      <div class="dialog-actions">
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
        <button
          type="button"
          class={`button ${isDanger ? "danger" : "primary"}`}
          disabled={action.isRunning.value}
          // The first thing that Enter does is what was asked for.
          autoFocus
          onClick={() => void action.run()}
        >
          {action.isRunning.value ? "Working…" : act}
        </button>
      </div>
    </Dialog>
  );
}

type AskOf = Omit<Confirmation, "close"> & Pick<ButtonOf, "icon" | "why"> & { word: string };

/** A button that asks before it does something. */
export function AskButton({ word, icon, why, ...asked }: AskOf) {
  const isAsking = useSignal(false);
  const kind = asked.isDanger ? "danger" : "";
  return (
    <>
      <ActionButton icon={icon} why={why} kind={kind} onClick={() => (isAsking.value = true)}>
        {word}
      </ActionButton>
      {isAsking.value && <Confirm {...asked} close={() => (isAsking.value = false)} />}
    </>
  );
}
