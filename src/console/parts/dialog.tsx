import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useKeys } from "../app/keys.ts";
import { say } from "../app/toasts.ts";
import { ActionButton } from "./fields.tsx";
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

/** A native dialog, open while it is rendered. Escape and a click on the backdrop close it unless it is `isFirm`. */
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

type Shape = Pick<DialogOf, "size" | "isFirm">;
type Confirmation = {
  title: string;
  /** The effect, in words. */
  children: ComponentChildren;
  /** The words on the button that does it. */
  act: string;
  run: () => Promise<unknown>;
  close: () => void;
  isDanger?: boolean;
  /** The first field has the focus, and not the button. */
  hasFields?: boolean;
  /** Why the action cannot run with the current fields. */
  why?: string | undefined;
  /** The words on the button while it is done. */
  working?: string;
};

/** Asks before something is done that cannot be undone, or that starts work. */
export function Confirm({ children, act, run, why, working = "Working…", ...of }: Confirmation & Shape) {
  const { isDanger = false, hasFields = false, ...dialog } = of;
  const action = useAction(async () => {
    await run();
    of.close();
  });
  return (
    <Dialog {...dialog}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (why === undefined) void action.run();
        }}
      >
        {children}
        <Failed of={action} />
        <div class="actions dialog-actions">
          <button type="button" class="button" onClick={of.close}>
            Cancel
          </button>
          {/* The button has the focus, so that Enter confirms. */}
          <ActionButton kind={isDanger ? "danger" : "primary"} why={why} runs={action} autoFocus={!hasFields}>
            {action.isRunning.value ? working : act}
          </ActionButton>
        </div>
      </form>
    </Dialog>
  );
}

type AskOf = Omit<Confirmation, "close"> & { icon?: string; word: string; hotkey?: string };

/** A button that asks before it does something. */
export function AskButton({ word, icon, why, hotkey, ...asked }: AskOf) {
  const isAsking = useSignal(false);
  const kind = asked.isDanger ? "danger" : "";
  const ask = () => {
    if (why === undefined) isAsking.value = true;
    else say(why, "bad");
  };
  useKeys(hotkey === undefined ? [] : [{ key: hotkey, does: word, run: ask }]);
  return (
    <>
      <ActionButton icon={icon} why={why} kind={kind} onClick={ask} {...(hotkey !== undefined && { hotkey })}>
        {word}
      </ActionButton>
      {isAsking.value && <Confirm {...asked} close={() => (isAsking.value = false)} />}
    </>
  );
}
