import { expect } from "vitest";
import type {
  AgentCount,
  AgentRecord,
  ApiKeyRecord,
  BeatRecord,
  BeatRun,
  ContentRecord,
  DeliveryRecord,
  KeyRecord,
  LateAttempt,
  OpenTurn,
  OpenTurnRecord,
  OutgoingRecord,
  SessionRecord,
  SummaryRecord,
  TurnRecord,
} from "#store/rules/records.ts";
import type { ApiKey, Outgoing, Session, SystemEvent, Turn, UsageCount } from "#store/store.ts";

type Kind<T> = T extends readonly unknown[]
  ? "array"
  : T extends string
    ? "string"
    : T extends number
      ? "number"
      : T extends boolean
        ? "boolean"
        : "object";
/** The fields that a record always has, with their types. The compiler demands all. */
type Shape<T> = { readonly [K in keyof T as undefined extends T[K] ? never : K]-?: Kind<T[K]> };

const SESSION: Shape<Session> = {
  sessionId: "string",
  agent: "string",
  channel: "string",
  userId: "string",
  createdAt: "number",
  updatedAt: "number",
  lastSeq: "number",
  firstSeq: "number",
  messageCount: "number",
  turnsQueued: "number",
  usage: "object",
  ordinal: "number",
  contextBytes: "number",
};
const TURN: Shape<Turn> = {
  turnId: "string",
  sessionId: "string",
  agent: "string",
  surface: "string",
  caller: "string",
  status: "string",
  attempt: "number",
  createdAt: "number",
  skillIds: "array",
  messageId: "string",
  seq: "number",
};
const OPEN: Shape<OpenTurn> = {
  waited: "boolean",
  countedModel: "string",
  replyMessageId: "string",
  spentMs: "number",
  isCancelled: "boolean",
};
const EVENT: Shape<SystemEvent> = {
  eventId: "string",
  agent: "string",
  text: "string",
  caller: "string",
  status: "string",
  attempts: "number",
  createdAt: "number",
  ordinal: "number",
};
const DELIVERY: Shape<DeliveryRecord["delivery"]> = {
  deliveryId: "string",
  at: "number",
  surface: "string",
  operation: "string",
  method: "string",
  path: "string",
  address: "string",
  requestId: "string",
  caller: "string",
  showsWords: "boolean",
  bytes: "number",
  answer: "string",
  steps: "array",
};
const RUN: Shape<BeatRun> = {
  began: "number",
  through: "number",
  before: "number",
  after: "number",
  events: "number",
  returned: "number",
  turnIds: "array",
  dead: "array",
  isLast: "boolean",
};
const MESSAGE: Shape<Outgoing> = {
  id: "string",
  endpoint: "string",
  sessionId: "string",
  agent: "string",
  channel: "string",
  hops: "number",
  createdAt: "number",
  attempts: "number",
};
const API_KEY: Shape<ApiKey> = {
  keyId: "string",
  name: "string",
  prefix: "string",
  hash: "string",
  scopes: "array",
  createdAt: "number",
};
const USAGE: Shape<UsageCount> = {
  hour: "number",
  agent: "string",
  model: "string",
  surface: "string",
  caller: "string",
  messages: "number",
  completed: "number",
  failed: "number",
  cancelled: "number",
  attempts: "number",
  latencyMs: "number",
  input: "number",
  output: "number",
  cached: "number",
  reasoning: "number",
  cost: "number",
};
const COUNTS: Shape<AgentCount> = {
  agent: "string",
  queued: "number",
  running: "number",
  compactions: "number",
  waitingEvents: "number",
  openEvents: "number",
  deadEvents: "number",
};

const OF_TURN = { turn: "object", ordinal: "number", place: "number", replySeq: "number" } as const;
const SHAPES: { readonly [table: string]: object } = {
  sessions: { session: "object", compactedCount: "number" } satisfies Shape<SessionRecord>,
  summaries: {
    ordinal: "number",
    summary: "object",
    through: "number",
    except: "array",
  } satisfies Shape<SummaryRecord>,
  turns: OF_TURN satisfies Shape<TurnRecord>,
  open_turns: { ...OF_TURN, open: "object" } satisfies Shape<OpenTurnRecord>,
  events: EVENT,
  deliveries: { delivery: "object", contentBytes: "number", place: "number" } satisfies Shape<DeliveryRecord>,
  contents: { place: "number", headers: "string" } satisfies Shape<ContentRecord>,
  idempotency_keys: { key: "string", hash: "string", expiresAt: "number" } satisfies Shape<KeyRecord>,
  usage: USAGE,
  agents: { agent: "string", failing: "boolean" } satisfies Shape<AgentRecord>,
  agent_counts: COUNTS,
  beats: { agent: "string", isAsked: "boolean" } satisfies Shape<BeatRecord>,
  outgoing: {
    message: "object",
    ordinal: "number",
    place: "number",
    fence: "number",
  } satisfies Shape<OutgoingRecord>,
  api_keys: { key: "object", place: "number" } satisfies Shape<ApiKeyRecord>,
  late_attempts: {
    turnId: "string",
    fence: "number",
    node: "string",
    agent: "string",
    surface: "string",
    caller: "string",
    endsAt: "number",
  } satisfies Shape<LateAttempt>,
  erasures: { ordinal: "number" },
};
const NESTED: { readonly [field: string]: object } = {
  session: SESSION,
  turn: TURN,
  open: OPEN,
  delivery: DELIVERY,
  run: RUN,
  message: MESSAGE,
};

function kindOf(value: unknown): string {
  return Array.isArray(value) ? "array" : typeof value;
}

function expectShape(value: object, shape: object): void {
  const kinds = Object.fromEntries(Object.entries(value).map(([name, field]) => [name, kindOf(field)]));
  expect(kinds, JSON.stringify(value)).toMatchObject(shape);
}

/** Expects all fields that a record of a table always has, with their types; also those of the objects in it. */
export function expectWhole(table: string, record: { readonly [name: string]: unknown }): void {
  expectShape(record, SHAPES[table] as object);
  for (const [name, shape] of Object.entries(NESTED)) {
    if (typeof record[name] === "object") expectShape(record[name] as object, shape);
  }
  if (table === "api_keys") expectShape(record.key as object, API_KEY);
}
