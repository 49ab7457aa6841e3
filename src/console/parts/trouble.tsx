import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { isReachable, type Trouble, troubleOf } from "../app/api.ts";
import { CopyButton } from "./copy.tsx";
import { Icon } from "./icon.tsx";
import { Prose } from "./prose.tsx";

const POLL_MS = 2_000;

type TroubleOf = {
  error: unknown;
  /** Reads again after a failed read. If the gateway was down, this happens automatically when it is back. */
  retry?: (() => void) | undefined;
  /** Repeats an action of the user, when the button is pressed. */
  repeat?: (() => void) | undefined;
};

/** An error: the cause, the remedy, and the request id for the log. */
export function TroubleNote({ error, retry, repeat }: TroubleOf) {
  const { name, title, detail, requestId }: Trouble = troubleOf(error);
  const isAway = name === "unreachable";
  const latest = useRef(retry);
  latest.current = retry;
  useEffect(() => {
    if (!isAway || !latest.current) return undefined;
    const timer = setInterval(async () => {
      if (await isReachable()) latest.current?.();
    }, POLL_MS);
    return () => clearInterval(timer);
  }, [isAway]);
  const again = retry ?? repeat;
  if (name === "not-allowed") return <Note tone="warning">{title}</Note>;
  return (
    <div class="note" data-tone="failed" role="alert">
      <Icon name="triangle-alert" />
      <div>
        <strong>{title}</strong>
        {detail && (
          <p>
            <Prose text={detail} />
            {isAway && (retry ? " Retrying automatically." : " Try again later.")}
          </p>
        )}
        {requestId && (
          <p class="faint">
            Cause in the gateway's log, request ID <span class="mono">{requestId}</span>
            <CopyButton text={requestId} what="Copy the request ID" />
          </p>
        )}
      </div>
      {again && (
        <button type="button" class="button" onClick={again}>
          <Icon name="refresh-cw" size={14} /> Try again
        </button>
      )}
    </div>
  );
}

type FailedOf = { of: { error: Signal<unknown>; reload?: () => unknown }; repeat?: () => void };

/** The error of a read or an action, if there is one. A failed read can be repeated. */
export function Failed({ of: { error, reload }, repeat }: FailedOf) {
  if (error.value === undefined) return null;
  return <TroubleNote error={error.value} retry={reload && (() => void reload())} repeat={repeat} />;
}

const TONES = { info: undefined, warning: "warning", bad: "failed", ok: "done" } as const;

type NoteOf = { tone?: keyof typeof TONES; children: preact.ComponentChildren };

/** The result of something that was done, until it is closed. */
export function ResultNote({ close, children, ...note }: NoteOf & { close: () => void }) {
  return (
    <div role="status">
      <Note {...note}>
        {children}
        <button type="button" class="link" onClick={close}>
          Close
        </button>
      </Note>
    </div>
  );
}

/** A word of warning, or of explanation. */
export function Note({ tone = "info", children }: NoteOf) {
  return (
    <div class="note" data-tone={TONES[tone]}>
      <Icon name={tone === "ok" ? "check" : tone === "info" ? "book-open" : "triangle-alert"} />
      <div>{children}</div>
    </div>
  );
}
