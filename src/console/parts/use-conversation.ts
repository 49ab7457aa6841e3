import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";
import { rpc } from "../app/api.ts";
import { gathered, hold, onReturn } from "../app/live.ts";
import {
  EMPTY,
  onlyNewest,
  type SessionPush,
  startsAnew,
  type Transcript,
  withPage,
  withPush,
} from "../lib/transcript.ts";
import { useLoaded } from "./use.ts";

export type Details = RpcMethods["session.get"]["result"];
export type ConversationState = ReturnType<typeof useConversation>;

/** The conversation of a session, or of one of its turns: the newest page, older pages on demand, and new messages. */
export function useConversation(sessionId: string, turnId?: string) {
  const transcript = useSignal<Transcript>(EMPTY);
  const older = useSignal<string | null>(null);
  const isLoadingOlder = useSignal(false);
  const olderError = useSignal<unknown>(undefined);
  /** The place to subscribe from: now, or the beginning of a reply whose first pieces are missing. */
  const from = useSignal<string | null>(null);
  const resumed = useRef(new Set<string>());
  /** The reader follows the end. */
  const isAtEnd = useRef(turnId === undefined);
  const asked = { sessionId, includeCompacted: true, includeTurns: true, ...(turnId && { turnId }) };

  const loaded = useLoaded(
    async (signal) => {
      const details = await rpc().session.get(asked, { signal });
      const isAnew = startsAnew(transcript.peek(), details.messages, isAtEnd.current);
      transcript.value = (isAnew ? onlyNewest : withPage)(transcript.peek(), details);
      if (isAnew) older.value = details.nextCursor;
      return details;
    },
    [sessionId, turnId],
  );

  useEffect(() => hold({ sessions: { [sessionId]: from.value } }), [sessionId, from.value]);

  useEffect(() => {
    const stop = gathered(
      ({ params }) => {
        const of = params as { sessionId?: string; turnId?: string };
        return of.sessionId === sessionId && (turnId ?? of.turnId) === of.turnId;
      },
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
  }, [sessionId, turnId]);

  const readOlder = async (): Promise<void> => {
    const cursor = older.peek();
    if (cursor === null || isLoadingOlder.peek()) return;
    isLoadingOlder.value = true;
    olderError.value = undefined;
    try {
      const page = await rpc().session.get({ ...asked, cursor });
      transcript.value = withPage(transcript.peek(), page);
      older.value = page.nextCursor;
    } catch (thrown) {
      olderError.value = thrown;
    } finally {
      isLoadingOlder.value = false;
    }
  };
  return { transcript, loaded, older, isLoadingOlder, olderError, readOlder, isAtEnd };
}
