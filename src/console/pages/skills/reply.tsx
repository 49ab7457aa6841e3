import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { hrefOf } from "#console/app/router.ts";
import { Id } from "#console/parts/copy.tsx";
import { Markdown } from "#console/parts/markdown.tsx";
import { Facts } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { TroubleNote } from "#console/parts/trouble.tsx";
import type { SkillRequest } from "#generated/clients/typescript/src/rest.ts";

/** A turn that was triggered, as far as it is known. */
type Triggered = {
  status: "running" | "completed" | "failed" | "cancelled" | "unfollowed";
  text: string;
  turnId: string | undefined;
  sessionId: string | undefined;
  /** Why it failed, or could not be started. */
  error: unknown;
};

/** Triggers a skill, and follows the reply while it is written. */
export function useTrigger(): {
  run: (body: SkillRequest) => Promise<void>;
  stop: () => void;
  state: Signal<Triggered | undefined>;
} {
  const state = useSignal<Triggered | undefined>(undefined);
  const running = useRef<AbortController>(undefined);
  const stop = () => running.current?.abort();
  useEffect(() => stop, []);

  const run = async (body: SkillRequest): Promise<void> => {
    stop();
    const own = new AbortController();
    running.current = own;
    let now: Triggered = { status: "running", text: "", turnId: undefined, sessionId: undefined, error: undefined };
    const change = (next: Partial<Triggered>) => {
      now = { ...now, ...next };
      state.value = now;
    };
    change({});
    try {
      for await (const { event, data } of rest().skills.stream(body, { signal: own.signal })) {
        if (own.signal.aborted) break;
        const { turn_id: turnId } = data;
        const sessionId = "session_id" in data ? (data.session_id as string) : now.sessionId;
        if (event === "message.delta") change({ turnId, text: now.text.slice(0, data.offset) + data.text });
        else if (event === "message.completed") change({ turnId, text: data.text });
        else if (event === "turn.completed") change({ turnId, sessionId, status: "completed" });
        else if (event === "turn.cancelled") change({ turnId, sessionId, status: "cancelled" });
        else if (event === "turn.failed")
          change({ turnId, sessionId, status: "failed", error: new Error(data.error.detail) });
        else change({ turnId, sessionId });
      }
    } catch (error) {
      if (!own.signal.aborted) change({ status: "failed", error });
    } finally {
      if (own.signal.aborted && running.current === own && now.status === "running") change({ status: "unfollowed" });
    }
  };
  return { run, stop, state };
}

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
