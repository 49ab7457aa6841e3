import { type Trouble, troubleOf } from "../app/api.ts";
import { CopyButton } from "./copy.tsx";
import { Icon } from "./icon.tsx";
import { Prose } from "./prose.tsx";

/** An error: the cause, the remedy, and the request id to look it up by. */
export const TroubleNote = ({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) => {
  const { title, detail, requestId }: Trouble = troubleOf(error);
  return (
    <div class="note bad" role="alert">
      <Icon name="triangle-alert" />
      <div>
        <strong>{title}</strong>
        {detail && (
          <p>
            <Prose text={detail} />
          </p>
        )}
        {requestId && (
          <p class="faint">
            The gateway's log has the cause under <span class="mono">{requestId}</span>
            <CopyButton text={requestId} what="Copy the request id" />
          </p>
        )}
      </div>
      {retry && (
        <button type="button" class="button" onClick={retry}>
          <Icon name="refresh-cw" size={14} /> Try again
        </button>
      )}
    </div>
  );
};

/** A word of warning, or of explanation. */
export const Note = ({
  tone = "info",
  children,
}: {
  tone?: "info" | "warning" | "bad" | "ok";
  children: preact.ComponentChildren;
}) => (
  <div class={`note ${tone}`}>
    <Icon name={tone === "ok" ? "check" : tone === "info" ? "book-open" : "triangle-alert"} />
    <div>{children}</div>
  </div>
);
