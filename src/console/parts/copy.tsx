import { rest } from "../app/api.ts";
import { hrefOf } from "../app/router.ts";
import { whyNot } from "../app/session.ts";
import { copyText } from "../app/toasts.ts";
import { shortId } from "../lib/ids.ts";
import { Icon } from "./icon.tsx";
import { useLoaded } from "./use.ts";

/** A button that copies a text. */
export function CopyButton({
  text,
  what = "Copy",
  label,
}: {
  text: string | (() => string);
  what?: string;
  label?: string;
}) {
  return (
    <button
      type="button"
      class={label ? "button" : "icon-button copy"}
      title={what}
      aria-label={label ? undefined : what}
      onClick={(event) => {
        event.preventDefault();
        event.stopPropagation();
        void copyText(typeof text === "string" ? text : text());
      }}
    >
      <Icon name="copy" size={14} />
      {label}
    </button>
  );
}

/** An id: short where room is short, whole for whoever points at it or copies it. A link where it leads somewhere. */
export function Id({
  id,
  href,
  most = 22,
}: {
  id: string | null | undefined;
  href?: string | undefined;
  most?: number;
}) {
  if (!id) return <span class="faint">–</span>;
  const text = shortId(id, most);
  return (
    <span class="id">
      {href ? (
        <a class="mono" href={href} title={id}>
          {text}
        </a>
      ) : (
        <span class="mono" title={id}>
          {text}
        </span>
      )}
      <CopyButton text={id} what={`Copy ${id}`} />
    </span>
  );
}

/** A command to copy. */
export function Command({ text, what = "Copy the command" }: { text: string; what?: string }) {
  return (
    <>
      <div class="command">
        <pre tabIndex={0}>
          <code>{text}</code>
        </pre>
        <CopyButton text={text} what={what} />
      </div>
      {text.includes("$REST_API_KEY") && <FirstKey />}
    </>
  );
}

/** Where no REST key exists, the variable of a command has no value yet. */
function FirstKey() {
  const isMissing = useLoaded(
    async (signal) =>
      whyNot("keys") === undefined && (await rest().keys.list({ limit: 1 }, { signal })).keys.length === 0,
  );
  return isMissing.value.value === true ? (
    <p class="hint">
      No API key exists yet. <a href={hrefOf("/settings?create=1")}>Create a key</a> to set <code>REST_API_KEY</code>.
    </p>
  ) : null;
}
