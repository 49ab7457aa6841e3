import type { Turn, TurnStatus } from "#store/store.ts";
import type { State } from "./state.ts";
import { decodeEndedTurn } from "./turn-codec.ts";

export const hasTurn = (state: State, turnId: string): boolean =>
  state.turns.get(turnId) !== undefined || endedTurn(state, turnId) !== undefined;

/** Undefined when it was erased. */
export const statusOfTurn = (state: State, turnId: string): TurnStatus | undefined =>
  state.turns.get(turnId)?.status ?? endedTurn(state, turnId)?.turn.status;

/** Says quickly if a turn can have that status. Most turns that have ended are passed over without being parsed. */
export const mayHaveStatus = (state: State, turnId: string, status: string): boolean =>
  state.turns.get(turnId) !== undefined || state.ended.get(turnId)?.body.includes(`"${status}"`) === true;

/** A turn that has ended, with its reply. One whose first entry was erased is gone. */
export const readEndedTurn = (state: State, turnId: string): Turn | undefined => {
  const found = endedTurn(state, turnId);
  if (!found) return undefined;
  const { turn, replySeq, ordinal } = found;
  const entry = replySeq === 0 ? undefined : state.journal.entry(ordinal, replySeq);
  if (entry?.name === "message.completed") turn.reply = entry.text;
  return turn;
};

const endedTurn = (state: State, turnId: string): { turn: Turn; replySeq: number; ordinal: number } | undefined => {
  const found = state.ended.get(turnId);
  const session = found && state.sessions.at(found.ordinal);
  if (!session) return undefined;
  const { turn, replySeq } = decodeEndedTurn(turnId, session, found.body);
  return turn.seq - 1 < session.firstSeq ? undefined : { turn, replySeq, ordinal: found.ordinal };
};
