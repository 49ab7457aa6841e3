/** A message as the transcript shows it. `isOpen`: it is still being written. */
export type Line = {
  messageId: string;
  role: "user" | "assistant" | "system" | "tool";
  text: string;
  turnId: string | null;
  createdAt: string;
  compacted: boolean;
  isOpen?: boolean;
};

export type TurnState = {
  status: "queued" | "running" | "completed" | "failed" | "cancelled";
  since: string;
  why?: string | undefined;
};

/** A conversation, oldest message first, with the turns that have not ended or ended badly. */
export type Transcript = { lines: readonly Line[]; turns: ReadonlyMap<string, TurnState>; isDeleted: boolean };

export const emptyTranscript: Transcript = { lines: [], turns: new Map(), isDeleted: false };

type PushParams = {
  messageId?: string;
  turnId?: string;
  role?: Line["role"];
  text?: string;
  offset?: number;
  at?: string;
  error?: { name: string; title: string; detail?: string };
};

/** Puts a page of messages beside what is there. What is stored is the truth; a reply that is still being written stays. */
export const withPage = (transcript: Transcript, page: readonly Line[]): Transcript => {
  const stored = new Map(page.map((line) => [line.messageId, line]));
  const open = new Map(transcript.lines.filter(({ isOpen }) => isOpen).map((line) => [line.messageId, line]));
  const known = transcript.lines.filter(({ messageId }) => !stored.has(messageId));
  const lines = page.map((line) => (line.text === "" ? (open.get(line.messageId) ?? line) : line));
  return { ...transcript, lines: [...known, ...lines].sort(byTime) };
};

const byTime = (one: Line, other: Line): number =>
  one.createdAt === other.createdAt
    ? one.messageId < other.messageId
      ? -1
      : 1
    : one.createdAt < other.createdAt
      ? -1
      : 1;

/** What a push makes of a transcript. One that came before changes nothing. */
export const withPush = (transcript: Transcript, method: string, params: object): Transcript => {
  const given = params as PushParams;
  const { messageId = "", turnId = "", text = "", at = "" } = given;
  switch (method) {
    case "message.created": {
      if (transcript.lines.some((line) => line.messageId === messageId)) return transcript;
      const role = given.role ?? "assistant";
      const line = {
        messageId,
        role,
        text,
        turnId,
        createdAt: at,
        compacted: false,
        ...(text === "" && { isOpen: true }),
      };
      return { ...transcript, lines: [...transcript.lines, line] };
    }
    case "message.delta":
      return changeLine(transcript, messageId, (line) => withDelta(line, given.offset ?? 0, text));
    case "message.completed":
      return changeLine(transcript, messageId, ({ isOpen: _, ...line }) => ({ ...line, text }));
    case "turn.queued":
      return withTurn(transcript, turnId, { status: "queued", since: at });
    case "turn.started":
      return withTurn(transcript, turnId, { status: "running", since: at });
    case "turn.completed":
      return withTurn(closed(transcript, turnId), turnId, undefined);
    case "turn.cancelled":
      return withTurn(closed(transcript, turnId), turnId, { status: "cancelled", since: at });
    case "turn.failed":
      return withTurn(closed(transcript, turnId), turnId, {
        status: "failed",
        since: at,
        why: given.error?.detail ?? given.error?.title,
      });
    case "session.deleted":
      return { ...transcript, isDeleted: true };
    default:
      return transcript;
  }
};

/** A piece of a reply. It may tell again what is there, or leave a gap where a slow reader lost pieces. */
const withDelta = (line: Line, offset: number, text: string): Line => {
  const have = line.text.length;
  if (offset + text.length <= have) return line;
  if (offset > have) return { ...line, text: `${line.text} … ${text}`, isOpen: true };
  return { ...line, text: line.text.slice(0, offset) + text, isOpen: true };
};

const changeLine = (transcript: Transcript, messageId: string, change: (line: Line) => Line): Transcript => ({
  ...transcript,
  lines: transcript.lines.map((line) => (line.messageId === messageId ? change(line) : line)),
});

/** A turn that has ended writes no more. */
const closed = (transcript: Transcript, turnId: string): Transcript => ({
  ...transcript,
  lines: transcript.lines.map((line) => {
    if (line.turnId !== turnId || !line.isOpen) return line;
    const { isOpen: _, ...rest } = line;
    return rest;
  }),
});

const withTurn = (transcript: Transcript, turnId: string, state: TurnState | undefined): Transcript => {
  const turns = new Map(transcript.turns);
  if (state) turns.set(turnId, state);
  else turns.delete(turnId);
  return { ...transcript, turns };
};
