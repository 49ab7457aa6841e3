import { hashOf } from "#kit/secrets.ts";
import type { Span } from "#kit/span.ts";
import { type TraceContext, traceContextOf } from "#kit/traceparent.ts";
import type { RecordedDelivery, Turn } from "#store/store.ts";
import { headersOf, type TimelineStep } from "./deliveries.ts";
import { NAMES, OPERATIONS } from "./span-names.ts";

/** A turn that has ended, with its delivery and timeline. A turn of a heartbeat has no delivery, and an empty timeline. */
export type TracedTurn = { turn: Turn; delivery: RecordedDelivery | undefined; timeline: readonly TimelineStep[] };

/** Facts that are not in the records: the provider of a model, if a model answers, and the message if content may be exported. */
type TurnFacts = { provider: string | undefined; message: string | undefined };

/** The caller's trace, which the turn's spans continue; undefined where the caller named none. */
export function callerTraceOf(delivery: RecordedDelivery | undefined): TraceContext | undefined {
  return delivery && traceContextOf(headersOf(delivery).traceparent);
}

/** The trace of a turn. All gateways on a store, and each of their starts, find the same. */
export function traceIdOfTurn(turnId: string, caller: TraceContext | undefined): string {
  return caller?.traceId ?? hashOf(turnId).toString("hex", 0, 16);
}

function spanIdOf(turnId: string, part: string): string {
  return hashOf(`${turnId} ${part}`).toString("hex", 0, 8);
}

const ROOT = "request";

/** The spans of a turn: its request, each wait in the queue, each attempt with its model and tools. They are read from its timeline. */
export function spansOfTurn(traced: TracedTurn, facts: TurnFacts): Span[] {
  const { turn } = traced;
  const caller = callerTraceOf(traced.delivery);
  const traceId = traceIdOfTurn(turn.turnId, caller);
  const place = (part: string, parent?: string) => ({
    traceId,
    spanId: spanIdOf(turn.turnId, part),
    parentId: parent === undefined ? caller?.parentId : spanIdOf(turn.turnId, parent),
  });
  const attempts = attemptsOf(traced);
  return [
    { ...place(ROOT), ...requestOf(traced) },
    ...attempts.flatMap((attempt) => [
      { ...place(`queue ${attempt.number}`, ROOT), ...waitOf(attempt) },
      { ...place(`attempt ${attempt.number}`, ROOT), ...invocationOf(turn, attempt, facts) },
      ...chatsOf(turn, attempt, facts).map((span, n) => ({
        ...place(`chat ${attempt.number} ${n}`, `attempt ${attempt.number}`),
        ...span,
      })),
      ...attempt.tools.map((tool, n) => ({
        ...place(`tool ${attempt.number} ${n}`, `attempt ${attempt.number}`),
        ...toolOf(tool),
      })),
    ]),
  ];
}

type Body = Omit<Span, "traceId" | "spanId" | "parentId">;
type ToolRun = { name: string; from: number; to: number; reason: string | undefined };
type Attempt = {
  number: number;
  queuedAt: number;
  from: number;
  to: number;
  failure: string | undefined;
  tools: ToolRun[];
};

function requestOf({ turn, delivery }: TracedTurn): Body {
  return {
    name: delivery?.operation ?? "heartbeat",
    kind: delivery ? "server" : "internal",
    from: delivery ? Math.min(delivery.at, delivery.steps[0]?.at ?? delivery.at) : turn.createdAt,
    to: turn.createdAt,
    attributes: {
      [NAMES.surface]: turn.surface,
      [NAMES.caller]: turn.caller,
      [NAMES.turn]: turn.turnId,
      [NAMES.conversation]: turn.sessionId,
      ...(delivery && {
        [NAMES.method]: delivery.method || undefined,
        [NAMES.path]: delivery.path || undefined,
        [NAMES.status]: delivery.status,
        [NAMES.delivery]: delivery.deliveryId,
        [NAMES.request]: delivery.requestId,
      }),
    },
    failure: undefined,
  };
}

function waitOf({ number, queuedAt, from }: Attempt): Body {
  return {
    name: "queue",
    kind: "internal",
    from: queuedAt,
    to: from,
    attributes: { [NAMES.attempt]: number },
    failure: undefined,
  };
}

function invocationOf(turn: Turn, attempt: Attempt, { provider, message }: TurnFacts): Body {
  const { agent, usage, reply } = turn;
  const isLast = attempt.number === turn.attempt;
  return {
    name: `${OPERATIONS.agent} ${agent}`,
    kind: "internal",
    from: attempt.from,
    to: attempt.to,
    attributes: {
      [NAMES.operation]: OPERATIONS.agent,
      [NAMES.agent]: agent,
      [NAMES.conversation]: turn.sessionId,
      [NAMES.provider]: provider,
      [NAMES.turn]: turn.turnId,
      [NAMES.attempt]: attempt.number,
      [NAMES.error]: attempt.failure,
      ...(isLast && {
        [NAMES.responseModel]: turn.model,
        [NAMES.inputTokens]: usage?.input,
        [NAMES.outputTokens]: usage?.output,
      }),
      ...(isLast &&
        message !== undefined && {
          [NAMES.inputMessages]: messagesOf("user", message),
          [NAMES.outputMessages]: reply === undefined ? undefined : messagesOf("assistant", reply),
        }),
    },
    failure: attempt.failure,
  };
}

function messagesOf(role: string, content: string): string {
  return JSON.stringify([{ role, parts: [{ type: "text", content }] }]);
}

/** The model's share of an attempt: the time in which no tool ran. */
function chatsOf({ model, agent }: Turn, { from, to, tools, failure }: Attempt, { provider }: TurnFacts): Body[] {
  if (provider === undefined) return [];
  const shares: { from: number; to: number }[] = [];
  let since = from;
  for (const tool of [...tools].sort((one, other) => one.from - other.from)) {
    if (tool.from > since) shares.push({ from: since, to: tool.from });
    since = Math.max(since, tool.to);
  }
  shares.push({ from: since, to: Math.max(since, to) });
  return shares.map((share, n) => {
    const ending = n === shares.length - 1 ? failure : undefined;
    return {
      name: `${OPERATIONS.chat} ${model ?? agent}`,
      kind: "client",
      ...share,
      attributes: {
        [NAMES.operation]: OPERATIONS.chat,
        [NAMES.provider]: provider,
        [NAMES.requestModel]: model,
        [NAMES.error]: ending,
      },
      failure: ending,
    };
  });
}

function toolOf({ name, from, to, reason }: ToolRun): Body {
  return {
    name: `${OPERATIONS.tool} ${name}`,
    kind: "internal",
    from,
    to,
    attributes: {
      [NAMES.operation]: OPERATIONS.tool,
      [NAMES.tool]: name,
      [NAMES.error]: reason === undefined ? undefined : "tool_error",
    },
    failure: reason,
  };
}

/** The attempts of a turn, from its timeline, or from its record where that is all there is. */
function attemptsOf({ turn, timeline }: TracedTurn): Attempt[] {
  const attempts: Attempt[] = [];
  for (const { at, name, detail = {} } of timeline) {
    const last = attempts.at(-1);
    if (name === "turn.started") {
      const number = Number(detail.attempt);
      attempts.push({
        number,
        queuedAt: at - Number(detail.waited_ms ?? 0),
        from: at,
        to: at,
        failure: undefined,
        tools: [],
      });
    } else if (last && name === "turn.returned") {
      last.to = at;
      last.failure = textOf(detail.reason) ?? "returned";
    } else if (last && name === "tool.called") {
      const from = Math.max(last.from, at - Number(detail.ms ?? 0));
      last.tools.push({
        name: String(detail.tool),
        from,
        to: at,
        reason: detail.ok === false ? (textOf(detail.reason) ?? "failed") : undefined,
      });
    } else if (last && ENDS[name] !== undefined) {
      last.to = at;
      last.failure = name === "turn.completed" ? undefined : (textOf(detail.error) ?? ENDS[name]);
    }
  }
  if (attempts.length > 0 || turn.startedAt === undefined) return attempts;
  const failure = turn.status === "completed" ? undefined : (turn.error?.name ?? turn.status);
  const to = turn.endedAt ?? turn.startedAt;
  return [{ number: turn.attempt, queuedAt: turn.createdAt, from: turn.startedAt, to, failure, tools: [] }];
}

const ENDS: Readonly<Record<string, string>> = {
  "turn.completed": "completed",
  "turn.failed": "failed",
  "turn.cancelled": "cancelled",
};
function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The span of the latest attempt to announce a turn's reply; undefined where the timeline has none. */
export function spanOfAnnouncement({ turn, delivery, timeline }: TracedTurn): Span | undefined {
  const tried = timeline.filter(({ name }) => /^announcement\.(?:delivered|retried|failed)$/.test(name));
  const step = tried.at(-1);
  if (!step) return undefined;
  const { at, name, detail = {} } = step;
  const failure = name === "announcement.delivered" ? undefined : (textOf(detail.reason) ?? "failed");
  return {
    traceId: traceIdOfTurn(turn.turnId, callerTraceOf(delivery)),
    spanId: spanIdOf(turn.turnId, `announcement ${tried.length}`),
    parentId: spanIdOf(turn.turnId, ROOT),
    name: `announce ${String(detail.channel)}`,
    kind: "client",
    from: at - Number(detail.ms ?? 0),
    to: at,
    attributes: {
      [NAMES.channel]: String(detail.channel),
      [NAMES.attempt]: Number(detail.attempt ?? tried.length),
      [NAMES.status]: typeof detail.status === "number" ? detail.status : undefined,
      [NAMES.turn]: turn.turnId,
      [NAMES.error]: failure,
    },
    failure,
  };
}
