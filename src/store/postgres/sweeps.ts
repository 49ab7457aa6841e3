import type { Store } from "#store/store.ts";
import { noteBeats, type PlannedBeat } from "./beats.ts";
import { type Frame, LANE } from "./frame.ts";
import { keepOptional, keepText } from "./texts.ts";

/** So many sessions are looked at in one call, and so many rows of other things. */
const SESSIONS = 500;
const ROWS = 500;
const HOUR = 3_600_000;

type Slice = { next: number | null; kept: number; young?: number | null };

export const sweepMethods = (frame: Frame): Pick<Store, "sweep" | "deleteSession"> => {
  /** Where the last slice ended: an ordinal. */
  let sweptTo = 0;
  /** Sessions that this round has looked at and left, and when the next round may begin (monotonic). */
  let kept = 0;
  let nextRoundAt = 0;
  /** When the first session was made (wall clock), if none was old: till that is past its retention there is none to look at. */
  let oldest = 0;
  return {
    deleteSession: async (sessionId, now) => {
      const args = [keepText(sessionId), now, LANE, frame.time()];
      const answer = await frame.call<{ found: boolean; turnsCancelled: number }>("delete_session", args);
      return answer.found ? { turnsCancelled: answer.turnsCancelled } : undefined;
    },

    sweep: async (request) => {
      const { now, maxAttempts, lost, sessionsBefore, webhookSessionsBefore } = request;
      const turns = [now, maxAttempts, lost.name, keepOptional(lost.detail) ?? null, LANE, frame.time()];
      const inbound = [
        request.keysBefore,
        request.usageBefore,
        now - (now % HOUR),
        request.gatewayBefore,
        request.eventsBefore,
        ROWS,
        LANE,
        frame.time(),
      ];
      const [swept, { left, beats }] = (await frame.callAll([
        ["sweep_turns", turns],
        ["sweep_inbound", inbound],
      ])) as [{ left: number }, { left: number; beats: PlannedBeat[] }];
      noteBeats(frame, beats);
      const isMore = swept.left > 0 || left <= 0;
      if (sweptTo === 0 && frame.clock.monotonic() < nextRoundAt) return isMore;
      if (Math.max(sessionsBefore, webhookSessionsBefore) < oldest) return isMore;
      const sessions = [sweptTo, sessionsBefore, webhookSessionsBefore, now, SESSIONS, LANE, frame.time()];
      const slice = await frame.call<Slice>("sweep_sessions", sessions);
      kept += slice.kept;
      sweptTo = slice.next ?? 0;
      if (slice.next !== null) return true;
      nextRoundAt = kept > SESSIONS ? frame.clock.monotonic() + kept : 0;
      oldest = kept === 0 ? (slice.young ?? 0) : 0;
      kept = 0;
      return isMore;
    },
  };
};
