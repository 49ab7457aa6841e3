import type { Answer } from "./faults.ts";
import { type HttpStandIn, type Seen, startHttpStandIn } from "./http-stand-in.ts";

/** The agent's answer: the events of a stream, or the task of a complete answer. */
export type Plan = {
  /** Pieces of the artifact. */
  says: readonly string[];
  /** The state in which the task ends, and its message. */
  ends?: string;
  words?: string;
  /** A message instead of a task. */
  isMessage?: boolean;
  /** The usage, next to the last status or the message. */
  metadata?: object;
  /** The number of polls for which the task is still working. */
  polls?: number;
  /** Its stream is not ended. */
  staysOpen?: boolean;
};

export type A2aForm = { binding: "JSONRPC" | "HTTP+JSON"; streaming: boolean; paceMs?: number };

type Sent = { messageId: string; contextId?: string; taskId?: string; parts: { text?: string }[] };

const CARD = "/.well-known/agent-card.json";
function cardOf(url: string, { binding, streaming }: A2aForm) {
  return {
    name: "stand-in",
    description: "Says what it is told to say.",
    version: "1.0.0",
    supportedInterfaces: [
      { url: "https://grpc.example.com", protocolBinding: "GRPC", protocolVersion: "1.0" },
      { url: `${url}/a2a`, protocolBinding: binding, protocolVersion: "1.0" },
    ],
    capabilities: { streaming },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
  };
}

/** A remote agent with A2A 1.0, at the level of bytes. `plan` determines its answer to a message. */
export async function startA2aAgent(
  form: A2aForm,
  plan: (text: string) => Plan = (text) => ({ says: ["You said: ", text, " That is all."] }),
) {
  let card: object = {};
  let count = 0;
  const tasks = new Map<string, { contextId: string; plan: Plan; polls: number }>();
  const isRpc = form.binding === "JSONRPC";

  const wrap = (id: unknown, result: unknown) => JSON.stringify(isRpc ? { jsonrpc: "2.0", id, result } : result);
  const json = (id: unknown, result: unknown): Answer => ({
    headers: { "content-type": isRpc ? "application/json" : "application/a2a+json" },
    body: [wrap(id, result)],
    errorInside: JSON.stringify({
      jsonrpc: "2.0",
      id,
      error: { code: -32603, message: "raw-words-of-the-remote sk-secret-key-1234567890" },
    }),
  });
  const messageOf = (text: string, contextId: string) => ({
    messageId: "m1",
    contextId,
    role: "ROLE_AGENT",
    parts: [{ text }],
  });
  const statusOf = ({ ends = "COMPLETED", words }: Plan, contextId: string) => ({
    state: `TASK_STATE_${ends}`,
    ...(words !== undefined && { message: messageOf(words, contextId) }),
  });

  const taskOf = (id: string) => {
    const task = tasks.get(id);
    if (!task) throw new Error(`no task ${id}`);
    const { contextId, plan: planned } = task;
    const isAtWork = task.polls-- > 0;
    const artifacts = isAtWork ? [] : [{ artifactId: "a1", parts: [{ text: planned.says.join("") }] }];
    const status = isAtWork ? { state: "TASK_STATE_WORKING" } : statusOf(planned, contextId);
    const { metadata } = planned;
    return {
      id,
      contextId,
      status,
      artifacts: planned.says.length > 0 ? artifacts : [],
      ...(metadata && { metadata }),
    };
  };

  const stream = (id: unknown, taskId: string, contextId: string, planned: Plan): Answer => {
    const at = { taskId, contextId };
    const events = [
      { task: { id: taskId, contextId, status: { state: "TASK_STATE_SUBMITTED" } } },
      { statusUpdate: { ...at, status: { state: "TASK_STATE_WORKING", message: messageOf("thinking", contextId) } } },
      ...planned.says.map((text, n) => ({
        artifactUpdate: { ...at, artifact: { artifactId: "a1", parts: [{ text }] }, append: n > 0, lastChunk: false },
      })),
      { statusUpdate: { ...at, status: statusOf(planned, contextId), metadata: planned.metadata } },
    ];
    const error = { code: -32603, message: "raw-words-of-the-remote sk-secret-key-1234567890" };
    return {
      headers: { "content-type": "text/event-stream" },
      body: events.map((event) => `data: ${wrap(id, event)}\n\n`),
      paceMs: form.paceMs ?? 0,
      staysOpen: planned.staysOpen ?? false,
      errorInside: isRpc
        ? `data: ${JSON.stringify({ jsonrpc: "2.0", id, error })}\n\n`
        : `event: error\ndata: ${JSON.stringify({ error: { code: 500, message: error.message } })}\n\n`,
    };
  };

  const send = (id: unknown, message: Sent, isStream: boolean): Answer => {
    const text = message.parts.at(-1)?.text ?? "";
    const planned = plan(text);
    const contextId = message.contextId ?? "made-here";
    if (planned.isMessage) {
      const said = { message: { ...messageOf(planned.says.join(""), contextId), metadata: planned.metadata } };
      return isStream
        ? { headers: { "content-type": "text/event-stream" }, body: [`data: ${wrap(id, said)}\n\n`] }
        : json(id, said);
    }
    const taskId = `task-${++count}`;
    tasks.set(taskId, { contextId, plan: planned, polls: planned.polls ?? 0 });
    return isStream ? stream(id, taskId, contextId, planned) : json(id, { task: taskOf(taskId) });
  };

  const rpc = ({ json: call }: Seen): Answer => {
    const { id, method, params } = call as { id: unknown; method: string; params: { id: string; message: Sent } };
    if (method === "SendMessage") return send(id, params.message, false);
    if (method === "SendStreamingMessage") return send(id, params.message, true);
    if (method === "GetTask") return json(id, taskOf(params.id));
    if (method === "CancelTask") return json(id, { ...taskOf(params.id), status: { state: "TASK_STATE_CANCELED" } });
    return json(id, null);
  };
  const rest = ({ path, json: body }: Seen): Answer => {
    const { message } = body as { message: Sent };
    if (path.endsWith("/message:send")) return send(undefined, message, false);
    if (path.endsWith("/message:stream")) return send(undefined, message, true);
    const [, id = ""] = /\/tasks\/([^:?]+)/.exec(path) ?? [];
    return json(undefined, taskOf(id));
  };

  const server: HttpStandIn = await startHttpStandIn((seen) => {
    if (seen.path === CARD) return { headers: { "content-type": "application/json" }, body: [JSON.stringify(card)] };
    return isRpc ? rpc(seen) : rest(seen);
  });
  card = cardOf(server.url, form);
  return {
    ...server,
    /** Changes values of its card. */
    setCard: (more: object) => {
      card = { ...card, ...more };
    },
    /** The messages that it received. */
    messages: () =>
      server.seen.flatMap(({ json: call }) => {
        const { message = (call.params as { message?: Sent } | undefined)?.message } = call as { message?: Sent };
        return message ? [message] : [];
      }),
  };
}
