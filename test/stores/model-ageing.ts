import type { ModelSession, ModelTurn } from "./model.ts";

/** The `seq` before which a sweep erases a session's journal. */
export const cutOf = (
  { entries, times, firstSeq, through }: ModelSession,
  bound: number,
  turns: ReadonlyMap<string, ModelTurn>,
  isAnnounced: (turnId: string) => boolean,
): number => {
  const seqOf = (entry: string) => entries.indexOf(entry) + 1;
  const isKept = (turnId: string): boolean => {
    const turn = turns.get(turnId)?.turn;
    // An earlier sweep took it, and left its last entries.
    if (!turn) return false;
    const isCompacted = turn.seq - 1 <= through && seqOf(`message.completed ${turnId}`) <= through;
    return (turn.endedAt ?? Infinity) > bound || isAnnounced(turnId) || !isCompacted;
  };
  for (let seq = firstSeq; seq <= entries.length; seq++) {
    const [, turnId = ""] = (entries[seq - 1] as string).split(" ");
    if ((times[seq - 1] as number) > bound || (turnId !== "" && isKept(turnId))) return seq;
  }
  return entries.length + 1;
};
