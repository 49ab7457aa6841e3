import type { ErrorName } from "#generated/errors.ts";
import type { OpenAiError } from "#generated/rest-types.ts";
import type { Operation } from "#generated/routes.ts";
import { routes } from "#generated/routes.ts";
import {
  errorNameOf,
  eventFaults,
  faultsOf,
  LAST_EVENTS,
  mediaOf,
  type Place,
  type Problem,
  type Route,
  routeAt,
  routesAt,
  type StreamEvent,
} from "./contract.ts";
import { noteChecked, noteFault, settling } from "./ledger.ts";
import { createChunkReader, isOpenAiPath, openAiErrorNameOf } from "./openai-contract.ts";
import { notePair } from "./pairs.ts";
import { rpcReplyFaults } from "./rpc-contract.ts";
import { createEventReader } from "./sse.ts";

/** A validated reply. */
export type Reply = {
  status: number;
  headers: Headers;
  requestId: string;
  text: string;
  /** The body parsed as JSON; undefined if it is not JSON. */
  json: Record<string, unknown>;
  problem: Problem;
  /** The error of the problem, or of the only answer of an RPC reply; undefined for a success. */
  error: ErrorName | undefined;
};

export class ContractFault extends Error {
  constructor(faults: readonly string[]) {
    super(`The reply does not match the contract:\n  ${faults.join("\n  ")}`);
    for (const fault of faults) noteFault(fault);
  }
}

/** Validates a complete reply. Throws if it does not match the contract. */
export function checkReply(place: Place, status: number, headers: Headers, text: string): Reply {
  const type = mediaOf(headers);
  const isRpc = /^\/rpc(?![\w-])/.test(place.path) && type !== "application/problem+json";
  const faults = isRpc
    ? rpcReplyFaults(status, headers, text, place.method === "HEAD")
    : faultsOf(place, { status, headers, body: text });
  const requestId = headers.get("x-request-id") ?? "";
  noteChecked(requestId);
  if (faults.length > 0) throw new ContractFault(faults);
  const json = type?.endsWith("json") && text !== "" ? JSON.parse(text) : undefined;
  const isProblem = type === "application/problem+json";
  const error: ErrorName | undefined =
    isProblem && json ? errorNameOf(json) : isRpc ? json?.error?.data.name : openAiErrorIn(place, status, json);
  noteOutcome(place, error ?? String(status));
  return { status, headers, requestId, text, json, problem: json, error };
}

function noteOutcome(place: Place, outcome: string): void {
  // All operations of a path refuse an undefined method.
  const route = routeAt(place);
  const answering = outcome === "method-not-allowed" ? routesAt(place.path) : route ? [route] : [];
  for (const { operation } of answering) notePair(operation, outcome);
}

function openAiErrorIn({ path }: Place, status: number, json: unknown): ErrorName | undefined {
  return isOpenAiPath(path) && status >= 400 ? openAiErrorNameOf(json as OpenAiError) : undefined;
}

/** `fetch` that validates every reply, and each event of a stream while it passes. */
export function checkedFetch(request: Request): Promise<Response> {
  return settling(async () => {
    const { pathname, search } = new URL(request.url);
    const place = { method: request.method, path: pathname + search };
    const response = await fetch(request);
    if (mediaOf(response.headers) === "text/event-stream") return checkedStream(place, response);
    const text = await response.text();
    checkReply(place, response.status, response.headers, text);
    return new Response(response.status === 204 ? null : text, response);
  });
}

/** Validates the head of a stream. */
export function checkHead(place: Place, status: number, headers: Headers): void {
  const faults = faultsOf(place, { status, headers, body: undefined });
  noteChecked(headers.get("x-request-id") ?? "");
  const route = routeAt(place);
  if (!route?.stream) faults.push(`${place.path} has no stream`);
  if (faults.length > 0) throw new ContractFault(faults);
  if (route) notePair(route.operation, String(status));
}

function checkedStream(place: Place, response: Response): Response {
  checkHead(place, response.status, response.headers);
  const { push, end } = isOpenAiPath(place.path) ? createChunkReader(tell) : createTurnReader();
  const checker = new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, controller) {
      push(bytes);
      controller.enqueue(bytes);
    },
    flush: end,
  });
  return new Response(response.body?.pipeThrough(checker), response);
}

function tell(fault: string): never {
  throw new ContractFault([fault]);
}

/** Validates a turn's events while they arrive. */
function createTurnReader() {
  let last: StreamEvent | undefined;
  const { push, end } = createEventReader((event) => {
    const wrong = eventFaults(event);
    if (last && LAST_EVENTS.includes(last.event)) wrong.push(`${event.event} comes after ${last.event}`);
    if (last && Number(event.data.seq) < Number(last.data.seq)) wrong.push(`${event.id} comes after ${last.id}`);
    last = event;
    if (wrong.length > 0) throw new ContractFault(wrong);
  }, tell);
  return {
    push,
    end(): void {
      end();
      if (last && !LAST_EVENTS.includes(last.event)) tell(`the stream ends after ${last.event}`);
    },
  };
}

type Sending = {
  path?: Record<string, string>;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  /** Bytes and text are sent unchanged, anything else as JSON. */
  body?: unknown;
  /** Null sends no token. */
  key?: string | null;
  signal?: AbortSignal;
};

type EventStream = {
  headers: Headers;
  requestId: string;
  events: AsyncGenerator<StreamEvent>;
  /** All events until the turn ends. */
  all(): Promise<StreamEvent[]>;
};

/** A client of one gateway by the names of its operations. All replies are checked. */
export function createRest(baseUrl: string, defaultKey: string) {
  const requestOf = (method: string, target: string, { headers, body, key = defaultKey, signal }: Sending): Request => {
    const all = new Headers(headers);
    if (key !== null) all.set("authorization", `Bearer ${key}`);
    if (body !== undefined && !all.has("content-type")) all.set("content-type", "application/json");
    const raw = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
    return new Request(baseUrl + target, { method, headers: all, body: raw ?? null, signal: signal ?? null });
  };
  const send = async (method: string, target: string, sending: Sending = {}): Promise<Reply> => {
    const response = await checkedFetch(requestOf(method, target, sending));
    return checkReply({ method, path: target }, response.status, response.headers, await response.text());
  };
  const at = (operation: Operation, sending: Sending): [string, string] => {
    const { method, path } = routeOf(operation);
    return [method, targetOf(path, sending)];
  };
  return {
    send,
    call: (operation: Operation, sending: Sending = {}): Promise<Reply> => send(...at(operation, sending), sending),
    /** Opens a stream of events; a refusal throws. */
    stream: async (operation: Operation, sending: Sending = {}): Promise<EventStream> => {
      const streamed =
        sending.body === undefined ? sending : { ...sending, body: { ...(sending.body as object), stream: true } };
      const response = await checkedFetch(requestOf(...at(operation, sending), streamed));
      if (mediaOf(response.headers) !== "text/event-stream") throw new Error(await response.text());
      const events = eventsOf(response);
      const { headers } = response;
      return { headers, requestId: headers.get("x-request-id") as string, events, all: () => collect(events) };
    },
  };
}

export type Rest = ReturnType<typeof createRest>;

export function routeOf(operation: Operation): Route {
  return (routes as readonly Route[]).find((route) => route.operation === operation) as Route;
}

/** The request target of an operation's path with its parameters. */
export function targetOf(template: string, { path = {}, query }: Pick<Sending, "path" | "query">): string {
  return (
    template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? "")) +
    (query ? `?${new URLSearchParams(query)}` : "")
  );
}

async function* eventsOf({ body }: Response): AsyncGenerator<StreamEvent> {
  const events: StreamEvent[] = [];
  const { push } = createEventReader((event) => events.push(event), noteFault);
  for await (const bytes of body as ReadableStream<Uint8Array>) {
    push(bytes);
    yield* events.splice(0);
  }
}

async function collect(events: AsyncGenerator<StreamEvent>): Promise<StreamEvent[]> {
  const all: StreamEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}
