import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";

type Details = RpcMethods["session.get"]["result"];
type Message = Details["messages"][number];
type Turn = NonNullable<Details["turns"]>[string];

/** A message as a reader sees it: stored, or a reply that is still being written. */
export type TranscriptMessage = Message & {
  /** It is still being written. */
  isOpen: boolean;
  /** Pieces of it are missing; its end brings the whole. */
  hasGap: boolean;
};

type TurnStatus = Turn["status"];
/** A turn, from the last push or from the store. */
export type TranscriptTurn = Pick<Turn, "turnId" | "status" | "attempt"> &
  Partial<Turn> & {
    /** The time of its last change of state. */
    at: string;
  };

export type Transcript = {
  /** Oldest first, each turn's together. */
  readonly messages: readonly TranscriptMessage[];
  readonly turns: Readonly<Record<string, TranscriptTurn>>;
  /** The session was deleted. */
  readonly isDeleted: boolean;
  /** Where to subscribe again to get the whole of a reply whose beginning was not seen. */
  readonly missing: { messageId: string; cursor: string } | undefined;
  /** Increases after a change that requires a new read of the session: a compaction, a stream that was reset. */
  readonly stale: number;
};

/** A push with whatever it carries. */
export type SessionPush = { method: string; params: Readonly<Record<string, unknown>> };

export const EMPTY: Transcript = { messages: [], turns: {}, isDeleted: false, missing: undefined, stale: 0 };

/** Turns in the order of their first messages, and a turn's messages in theirs: a question that waits never parts another from its answer. */
function inOrder(messages: readonly TranscriptMessage[]): TranscriptMessage[] {
  const first = new Map<string, number>();
  for (const { turnId, seq } of messages) first.set(turnId, Math.min(seq, first.get(turnId) ?? seq));
  const turnOf = ({ turnId }: TranscriptMessage) => first.get(turnId) ?? 0;
  return [...messages].sort((one, other) => turnOf(one) - turnOf(other) || one.seq - other.seq);
}

/** A page of stored messages, with their turns. */
export type StoredPage = Pick<Details, "messages" | "turns">;

/** With a page of stored messages and turns. What is stored wins over what was pushed; nothing is doubled. */
export function withPage(transcript: Transcript, { messages, turns = {} }: StoredPage): Transcript {
  const stored = new Map(messages.map((message) => [message.messageId, { ...message, isOpen: false, hasGap: false }]));
  const notStored = transcript.messages.filter(({ messageId }) => !stored.has(messageId));
  return Object.values(turns).reduce<Transcript>(
    (all, turn) => withTurn(all, { ...turn, at: turn.endedAt ?? turn.startedAt ?? turn.createdAt }),
    { ...transcript, messages: inOrder([...notStored, ...stored.values()]) },
  );
}

/** The maximum number of messages of a conversation that is followed for hours; older ones can be read again. */
const MOST_FOLLOWED = 400;

/**
 * Whether only the newest page remains: it does not overlap the shown messages, so there is an unknown gap, or the reader `follows` the end of a
 * conversation that has become long.
 */
export function startsAnew({ messages }: Transcript, page: readonly Message[], follows: boolean): boolean {
  if (follows && messages.length > MOST_FOLLOWED) return true;
  const shown = new Set(messages.map(({ messageId }) => messageId));
  return !page.some(({ messageId }) => shown.has(messageId));
}

/** The newest page and the replies that are being written, with the turns of these and those that have not ended. */
export function onlyNewest(transcript: Transcript, page: StoredPage): Transcript {
  const newest = withPage({ ...transcript, messages: transcript.messages.filter(({ isOpen }) => isOpen) }, page);
  const shown = new Set(newest.messages.map(({ turnId }) => turnId));
  const turns = Object.entries(newest.turns).filter(([turnId, turn]) => shown.has(turnId) || !hasEnded(turn));
  return { ...newest, turns: Object.fromEntries(turns) };
}

const ENDED: ReadonlySet<TurnStatus> = new Set(["completed", "failed", "cancelled"]);
export function hasEnded({ status }: { status: TurnStatus }): boolean {
  return ENDED.has(status);
}

/** With a turn's state. A turn that has ended never runs again. */
export function withTurn(transcript: Transcript, turn: TranscriptTurn): Transcript {
  const before = transcript.turns[turn.turnId];
  if (before && hasEnded(before) && !hasEnded(turn)) return transcript;
  if (before?.status === "running" && turn.status === "queued") return transcript;
  return { ...transcript, turns: { ...transcript.turns, [turn.turnId]: { ...before, ...turn } } };
}

/** The waiting and running turns, in the order of their arrival. */
export function openTurns({ turns }: Transcript): TranscriptTurn[] {
  return Object.values(turns).filter((turn) => !hasEnded(turn));
}

/** Applies a push to a transcript. The same push twice changes nothing. */
export function withPush(transcript: Transcript, { method, params }: SessionPush): Transcript {
  const change = CHANGES[method];
  return change ? change(transcript, params as Params) : transcript;
}

type Params = {
  seq: number;
  cursor: string;
  turnId: string;
  messageId: string;
  at: string;
  role: Message["role"];
  text: string;
  offset: number;
  attempt: number;
  reply: string;
  usage: Turn["usage"];
  error: Turn["error"];
  toolCalls: Message["toolCalls"];
};
type Change = (transcript: Transcript, params: Params) => Transcript;

const created: Change = (transcript, { messageId, role, text, turnId, seq, at }) => {
  if (transcript.messages.some((one) => one.messageId === messageId)) return transcript;
  const isOpen = role === "assistant" && text === "";
  const message = { messageId, role, text, turnId, seq, createdAt: at, compacted: false, isOpen, hasGap: false };
  return { ...transcript, messages: inOrder([...transcript.messages, message]) };
};

/** Adds the piece at its place. A known piece changes nothing; if an earlier one is missing, the text does not change. */
const delta: Change = (transcript, params) => {
  const { messageId, turnId, seq, cursor, offset, text } = params;
  const known = transcript.messages.find((one) => one.messageId === messageId);
  if (known && !known.isOpen) return transcript;
  const at = known?.createdAt ?? transcript.turns[turnId]?.at ?? "";
  const open = known ?? { ...blank, messageId, turnId, seq, createdAt: at };
  const hasGap = offset > open.text.length;
  const grown = !hasGap && offset + text.length > open.text.length ? open.text.slice(0, offset) + text : open.text;
  const next = { ...open, text: grown, hasGap };
  const others = transcript.messages.filter((one) => one.messageId !== messageId);
  const started = transcript.turns[turnId] ? transcript : withTurn(transcript, turnOf(params, "running"));
  return {
    ...started,
    messages: inOrder([...others, next]),
    missing: hasGap
      ? { messageId, cursor }
      : transcript.missing?.messageId === messageId
        ? undefined
        : transcript.missing,
  };
};
const blank = { role: "assistant", text: "", compacted: false, isOpen: true, hasGap: false } as const;

const completed: Change = (transcript, { messageId, turnId, seq, at, text, toolCalls }) => {
  const known = transcript.messages.find((one) => one.messageId === messageId);
  const calls = toolCalls && { toolCalls };
  const whole = { ...blank, createdAt: at, ...known, messageId, turnId, text, ...calls, isOpen: false, hasGap: false };
  const others = transcript.messages.filter((one) => one.messageId !== messageId);
  // Its position remains that of its start.
  const messages = inOrder([...others, { ...whole, seq: known?.seq ?? seq }]);
  return {
    ...transcript,
    messages,
    missing: transcript.missing?.messageId === messageId ? undefined : transcript.missing,
  };
};

function turnOf({ turnId, at, attempt, error, usage }: Params, status: TurnStatus): TranscriptTurn {
  return {
    turnId,
    status,
    at: at ?? "",
    attempt: attempt ?? 1,
    ...(error && { error }),
    ...(usage && { usage }),
  };
}

/** Another attempt writes the reply again. */
const started: Change = (transcript, params) =>
  withTurn(
    params.attempt > 1
      ? {
          ...transcript,
          messages: transcript.messages.filter(({ isOpen, turnId }) => !isOpen || turnId !== params.turnId),
        }
      : transcript,
    turnOf(params, "running"),
  );

/** Nothing more is written of a turn that ended; an empty reply goes. */
function ended(status: TurnStatus): Change {
  return (transcript, params) => {
    const messages = transcript.messages.flatMap((one) =>
      one.turnId !== params.turnId || !one.isOpen
        ? [one]
        : (params.reply ?? one.text) === ""
          ? []
          : [{ ...one, text: params.reply ?? one.text, isOpen: false, hasGap: false }],
    );
    return withTurn({ ...transcript, messages }, turnOf(params, status));
  };
}

const stale: Change = (transcript) => ({ ...transcript, stale: transcript.stale + 1 });

const CHANGES: Readonly<Record<string, Change>> = {
  "message.created": created,
  "message.delta": delta,
  "message.completed": completed,
  "turn.queued": (transcript, params) => withTurn(transcript, turnOf(params, "queued")),
  "turn.started": started,
  "turn.completed": ended("completed"),
  "turn.failed": ended("failed"),
  "turn.cancelled": ended("cancelled"),
  "session.compacted": stale,
  "stream.reset": stale,
  "session.deleted": (transcript) => ({ ...transcript, isDeleted: true }),
};
