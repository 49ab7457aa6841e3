import { rest } from "../app/api.ts";
import { hrefOf } from "../app/router.ts";
import { whyNot } from "../app/session.ts";
import { copyText } from "../app/toasts.ts";
import { shortId } from "../lib/ids.ts";
import { Icon } from "./icon.tsx";
import { useLoaded } from "./use.ts";

type CopyOf = { text: string | (() => string); what?: string; label?: string };

/** A button that copies a text. */
export function CopyButton({ text, what = "Copy", label }: CopyOf) {
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

type IdOf = { id: string | null | undefined; href?: string | undefined; most?: number };

/** An id: short if there is little room, complete when it is pointed at or copied. A link if it has a page. */
export function Id({ id, href, most = 22 }: IdOf) {
  if (!id) return <span class="faint">–</span>;
  const Place = href ? "a" : "span";
  return (
    <span class="id">
      <Place class="mono" href={href} title={id}>
        {shortId(id, most)}
      </Place>
      <CopyButton text={id} what={`Copy ${id}`} />
    </span>
  );
}

/** A fact with an id and a link to its page, if it has one. Returns false if the id is null. */
export function idFact(name: string, id: string | null, page?: "t" | "e" | "s" | "d") {
  const href = page && id !== null ? hrefOf(`/${page}/${encodeURIComponent(id)}`) : undefined;
  return id !== null && ([name, <Id id={id} href={href} most={40} />] as const);
}

export function AgentLink({ name }: { name: string }) {
  return <a href={hrefOf(`/agents/${encodeURIComponent(name)}`)}>{name}</a>;
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
