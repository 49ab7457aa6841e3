import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { rest, rpc } from "#console/app/api.ts";
import { gathered, hold, onReturn } from "#console/app/live.ts";
import {
  EMPTY,
  onlyNewest,
  type SessionPush,
  startsAnew,
  type Transcript,
  withPage,
  withPush,
  withTurn,
} from "#console/lib/transcript.ts";
import { useLoaded } from "#console/parts/use.ts";
import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";

export type Details = RpcMethods["session.get"]["result"];

/** Questions without an answer on the page: their turns are asked how they are. More than these are not. */
const MOST_ASKED = 20;

/** A session's conversation: its newest page, older ones on demand, and what is said from now on. `isAtEnd`: the reader follows its end. */
export function useTranscript(sessionId: string, isAtEnd: () => boolean) {
  const transcript = useSignal<Transcript>(EMPTY);
  const older = useSignal<string | null>(null);
  const isLoadingOlder = useSignal(false);
  const olderError = useSignal<unknown>(undefined);
  /** Where to subscribe: now, or at the beginning of a reply that was met half way. */
  const from = useSignal<string | null>(null);
  const resumed = useRef(new Set<string>());

  const loaded = useLoaded(
    async (signal) => {
      const details = await rpc().session.get({ sessionId, includeCompacted: true }, { signal });
      const isAnew = startsAnew(transcript.peek(), details.messages, isAtEnd());
      transcript.value = (isAnew ? onlyNewest : withPage)(transcript.peek(), details.messages);
      if (isAnew) older.value = details.nextCursor;
      void askTurns(transcript, details);
      return details;
    },
    [sessionId],
  );

  useEffect(() => {
    const release = hold({ sessions: { [sessionId]: from.value } });
    return release;
  }, [sessionId, from.value]);

  useEffect(() => {
    const stop = gathered(
      ({ params }) => (params as { sessionId?: string }).sessionId === sessionId,
      (pushes) => {
        const before = transcript.peek();
        const next = (pushes as SessionPush[]).reduce(withPush, before);
        transcript.value = next;
        const { missing } = next;
        if (missing && !resumed.current.has(missing.messageId)) {
          resumed.current.add(missing.messageId);
          from.value = missing.cursor;
        }
        const hasEnded = pushes.some(({ method }) => /^turn\.(completed|failed|cancelled)$/.test(method));
        if ((hasEnded || next.stale !== before.stale) && !next.isDeleted) void loaded.reload();
      },
    );
    const unsubscribe = onReturn(() => void loaded.reload());
    return () => {
      stop();
      unsubscribe();
    };
  }, [sessionId]);

  const readOlder = async (): Promise<void> => {
    const cursor = older.peek();
    if (cursor === null || isLoadingOlder.peek()) return;
    isLoadingOlder.value = true;
    olderError.value = undefined;
    try {
      const page = await rpc().session.get({ sessionId, includeCompacted: true, cursor });
      transcript.value = withPage(transcript.peek(), page.messages);
      older.value = page.nextCursor;
    } catch (thrown) {
      olderError.value = thrown;
    } finally {
      isLoadingOlder.value = false;
    }
  };
  return { transcript, loaded, older, isLoadingOlder, olderError, readOlder };
}

/** The turns whose questions have no answer: they wait, run, or failed. */
async function askTurns(transcript: Signal<Transcript>, { messages }: Details): Promise<void> {
  const answered = new Set(messages.flatMap(({ role, turnId }) => (role === "assistant" ? [turnId] : [])));
  const { turns } = transcript.peek();
  const silent = messages.map(({ turnId }) => turnId).filter((turnId) => !answered.has(turnId) && !turns[turnId]);
  // The last one may have been stopped within its answer.
  const last = messages.slice(0, 1).map(({ turnId }) => turnId);
  const asked = [...new Set([...last.filter((turnId) => !turns[turnId]), ...silent])].slice(0, MOST_ASKED);
  const found = await Promise.allSettled(asked.map((turnId) => rest().turns.get(turnId)));
  for (const one of found) {
    if (one.status === "rejected") continue;
    const { turn_id, status, attempt, error, created_at, started_at, ended_at } = one.value;
    transcript.value = withTurn(transcript.peek(), {
      turnId: turn_id,
      status,
      attempt,
      at: ended_at ?? started_at ?? created_at,
      ...(error && { error }),
    });
  }
}
