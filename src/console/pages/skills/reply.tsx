import { hrefOf } from "#console/app/router.ts";
import { Id } from "#console/parts/copy.tsx";
import { Markdown } from "#console/parts/markdown.tsx";
import { Facts } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { TroubleNote } from "#console/parts/trouble.tsx";
import type { Triggered } from "./use-trigger.ts";

/** The agent's reply, with a link to its turn. */
export function Reply({ of: { status, text, turnId, sessionId, error } }: { of: Triggered }) {
  return (
    <section class="section" aria-label="Reply">
      <header>
        <h3>Reply</h3>
        <span role="status">
          <State
            of={status === "unfollowed" ? "running" : status}
            word={status === "unfollowed" ? "not followed" : status}
          />
        </span>
      </header>
      {error !== undefined && <TroubleNote error={error} />}
      {/* Markdown that is still written would jump: it is plain until it is whole. */}
      {text !== "" &&
        (status === "running" ? (
          <p class="plain-text caret" aria-live="polite">
            {text}
          </p>
        ) : (
          <Markdown text={text} />
        ))}
      {turnId !== undefined && (
        <Facts
          of={[
            ["Turn", <Id id={turnId} href={hrefOf(`/t/${turnId}`)} most={40} />],
            sessionId !== undefined && [
              "Session",
              <Id id={sessionId} href={hrefOf(`/s/${encodeURIComponent(sessionId)}`)} most={48} />,
            ],
          ]}
        />
      )}
    </section>
  );
}
