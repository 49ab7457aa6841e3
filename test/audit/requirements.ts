import { rows, type Shape } from "#test/contract/rows.ts";
import type { Answer, Gateway, RpcReply } from "./gateway.ts";

/** A requirement, and its check from outside. `unseen` is the reason if it cannot be checked. */
export type Requirement = { part: string; text: string } & ({ look: () => Promise<unknown> } | { unseen: string });

const SESSION = "audit";
const HOOK_SESSION = "webhook:audit";
const MESSAGE = "This is a check of the gateway. Answer with one word.";
const WRONG = "this-token-opens-no-door";
/** More than usual limits of webhooks. */
const FLOOD = 2_000;
const UNPROVOKED = "no request brings it about";

function must(isSo: boolean, found: string): void {
  if (!isSo) throw new Error(found);
}
function show(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 200) ?? "nothing";
}
function named({ status, error }: Answer): string {
  return error ? `${status} ${error}` : String(status);
}

/** A value of a JSON type that the field does not accept. */
function wrongFor({ type }: Shape): unknown {
  return type === "object" ? 7 : { not: "of this type" };
}
function isOf(type: string, value: unknown): boolean {
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  return type === "object"
    ? typeof value === "object" && value !== null && !Array.isArray(value)
    : typeof value === type;
}
function at(value: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], value);
}

type Schema = {
  type?: string | string[];
  required?: string[];
  properties?: Record<string, Schema>;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  minLength?: number;
  minimum?: number;
};
/** A value that a simple schema accepts: the required fields of an object, and no others. */
function exampleOf(schema: Schema): unknown {
  const given = [schema.const, schema.default, schema.examples?.[0], schema.enum?.[0]].find((one) => one !== undefined);
  if (given !== undefined) return given;
  const [type = "object"] = [schema.type ?? "object"].flat();
  const { required = [], properties = {}, minLength = 1, minimum = 1 } = schema;
  if (type === "object") return Object.fromEntries(required.map((name) => [name, exampleOf(properties[name] ?? {})]));
  const values: Record<string, unknown> = { array: [], boolean: true, null: null, number: minimum, integer: minimum };
  return type in values ? values[type] : "en".padEnd(minLength, "n");
}
/** The skill's own schema refused the params: the gateway accepted the field and did its part. */
function isOfSkill({ json }: Answer): boolean {
  const errors = (json?.errors ?? []) as { pointer: string }[];
  return errors.length > 0 && errors.every(({ pointer }) => pointer === "/params" || pointer.startsWith("/params/"));
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** The requirements of the interface, in the order of their checks. */
export function requirementsOf(gateway: Gateway, { flood = false } = {}): Requirement[] {
  const { send, sendRpc, call } = gateway;

  const agents = once(async (): Promise<string[]> => {
    const { result, error } = await call("agent.list");
    must(error === undefined, `agent.list: ${show(error)}`);
    return (result as { agents: { agentName: string }[] }).agents.map(({ agentName }) => agentName);
  });
  const agent = async (): Promise<string> => {
    const [first] = await agents();
    if (first === undefined) throw new Error("agent.list has no agent");
    return first;
  };
  type Skill = { skill_id: string; params_schema?: Schema };
  /** A skill that accepts any params, or else the first. */
  const skill = once(async (): Promise<Skill | undefined> => {
    const { json } = await send("GET /api/v1/skills/list");
    const all = (json?.skills as Skill[] | undefined) ?? [];
    return all.find(({ params_schema }) => params_schema === undefined) ?? all[0];
  });

  const bodyFor = async (operation: string): Promise<Record<string, unknown> | undefined> => {
    if (operation.startsWith("GET ")) return undefined;
    if (operation.endsWith("/chat/send")) return { message: MESSAGE, session_id: SESSION };
    if (operation.endsWith("/skills/trigger")) {
      const { skill_id = "none", params_schema } = (await skill()) ?? {};
      return { skill_id, session_id: SESSION, ...(params_schema && { params: exampleOf(params_schema) }) };
    }
    return operation.endsWith("/wake") ? { text: MESSAGE } : { message: MESSAGE, session: HOOK_SESSION };
  };
  /** A request that must succeed, and its reply. */
  const succeeding = new Map(
    rows.operations.map(({ operation }) => [
      operation,
      once(async () => {
        const reply = await send(operation, await bodyFor(operation));
        const isWithoutSkills = reply.error === "skill-not-found" && (await skill()) === undefined;
        must(reply.status < 300 || isWithoutSkills, `it answered ${named(reply)} ${show(reply.json?.detail)}`);
        return reply;
      }),
    ]),
  );
  const success = (operation: string): Promise<Answer> => succeeding.get(operation)?.() ?? send(operation);
  const REFUSED = ["invalid-request", "parse-error"];

  const operations = rows.operations.map(({ operation }) => ({
    text: `${operation} is an operation`,
    look: () => success(operation),
  }));

  const bodyFields = rows.bodyFields.map(({ operation, field, ...shape }) => ({
    text: `${operation} takes ${field}: ${shape.type}`,
    async look() {
      const body = await bodyFor(operation);
      for (const value of shape.accepts ?? []) {
        const reply = await send(operation, { ...body, [field]: value });
        must(
          !REFUSED.includes(reply.error ?? "") || isOfSkill(reply),
          `${show(value)} was refused: ${show(reply.json?.detail)}`,
        );
      }
      for (const value of [...(shape.refuses ?? []), wrongFor(shape)]) {
        const reply = await send(operation, { ...body, [field]: value });
        must(reply.status === 400, `${show(value)} was answered ${named(reply)}, not 400`);
      }
    },
  }));

  const replyFields = rows.replyFields.map(({ operation, status, field, type }) => ({
    text: `${operation} answers ${status} with ${field}: ${type}`,
    async look() {
      const reply = await success(operation);
      must(reply.status === status, `it answered ${named(reply)}`);
      must(isOf(type, at(reply.json, field)), `${field} is ${show(at(reply.json, field))}`);
    },
  }));

  const floodWith400 = async (operation: string): Promise<void> => {
    for (let n = 0; n < FLOOD; n++) {
      const reply = await send(operation, "{", {}, false);
      if (reply.status === 429) return;
      must(reply.status === 400, `it answered ${named(reply)}`);
    }
    throw new Error(`${FLOOD} requests were let through`);
  };
  const LIMITED = "--flood looks at it; senders from here are refused until the limit's window ends";
  // A flood blocks all others, so it is the last check.
  const isFlood = ({ status }: { status: number }): number => Number(status === 429);
  const statuses = rows.statuses
    .toSorted((a, b) => isFlood(a) - isFlood(b))
    .map(({ operation, status, errors }) => {
      const text = `${operation} answers ${[status, ...(errors ?? [])].join(", ")}`;
      if (status === 500) return { text, unseen: UNPROVOKED };
      if (status === 429) return flood ? { text, look: () => floodWith400(operation) } : { text, unseen: LIMITED };
      const look = async () => {
        const isStatus = (reply: Answer, sent: string) =>
          must(reply.status === status, `${sent} was answered ${named(reply)}`);
        if (status === 200) isStatus(await success(operation), "a valid body");
        if (status === 400) isStatus(await send(operation, "{"), "no JSON");
        if (status === 400) isStatus(await send(operation, {}), "a body without its required field");
        if (status === 401) isStatus(await send(operation, await bodyFor(operation), { bearer: null }), "no token");
        if (status === 401)
          isStatus(await send(operation, await bodyFor(operation), { bearer: WRONG }), "a wrong token");
      };
      return { text, look };
    });

  const tokens = rows.tokens.map(({ operation, as }) => ({
    text: `${operation} takes its token as ${as === "bearer" ? "Authorization: Bearer" : as}, and no other token`,
    async look() {
      const given = (token: string) => (as === "bearer" ? { bearer: token } : { bearer: null, ownHeader: token });
      const right = operation.includes("/hooks") ? gateway.target.webhookToken : gateway.target.key;
      // Nothing is started twice: an invalid body is refused after its token was checked.
      const body = operation.startsWith("GET") ? undefined : "{";
      const taken = await send(operation, body, given(right));
      must(![401, 403].includes(taken.status), `the token was answered ${named(taken)}`);
      const refused = await send(operation, body, given(WRONG));
      must(refused.status === 401, `another token was answered ${named(refused)}`);
    },
  }));

  const rpcPaths = [
    {
      text: "POST /rpc answers over HTTP/1.1",
      look: async () => must((await call("system.health")).result !== undefined, "system.health has no result"),
    },
    {
      text: "POST /rpc answers over HTTP/2",
      look: async () =>
        must((await gateway.callOverHttp2("system.health")).result !== undefined, "system.health has no result"),
    },
    {
      text: "/rpc/ws takes the same calls over WebSocket",
      async look() {
        using socket = await gateway.openSocket();
        must((await socket.call("system.health")).result !== undefined, "system.health has no result");
      },
    },
  ];

  const request = { jsonrpc: "2.0", id: "1", method: "agent.list", params: {} };
  const sendRequest = (change: object) => sendRpc(JSON.stringify({ ...request, ...change }));
  const ENVELOPE = -32600;
  const envelopes = rows.envelopes.map(({ shape, field, ...row }) => ({
    text: `${shape} has ${field}: ${row.type}`,
    async look() {
      if (shape === "RpcRequest") {
        for (const value of row.accepts ?? []) {
          const { error, id } = await sendRequest({ [field]: value });
          must(error?.code !== ENVELOPE, `${show(value)} was answered ${show(error)}`);
          if (field === "id") must(id === value, `it was answered with the id ${show(id)}`);
        }
        for (const value of [...(row.refuses ?? []), ...(row.required ? [undefined] : [])]) {
          const { error } = await sendRequest({ [field]: value });
          must(error?.code === ENVELOPE, `${show(value)} was answered ${show(error ?? "with a result")}`);
        }
        return;
      }
      const isFailure = shape === "RpcFailure";
      const answer = await sendRequest(isFailure ? { method: "agent.sendMessage" } : {});
      must((answer.error !== undefined) === isFailure, `it answered ${show(answer)}`);
      must(isOf(row.type, at(answer, field)), `${field} is ${show(at(answer, field))}`);
      if (field === "id") must(answer.id === request.id, `the id is ${show(answer.id)}`);
    },
  }));

  const sentMessage = once(async () => {
    const params = { agentName: await agent(), message: MESSAGE, sessionId: SESSION, wait: true };
    return await call("agent.sendMessage", params);
  });
  const paramsFor = async (method: string): Promise<object> => {
    if (method === "agent.status" || method === "agent.reload") return { agentName: await agent() };
    if (!["session.get", "session.compact", "session.delete"].includes(method)) return {};
    await sentMessage();
    return { sessionId: SESSION };
  };
  const methods = rows.methods.map(({ method }) => ({
    text: `${method} is a method`,
    async look() {
      const { error } = await (method === "agent.sendMessage" ? sentMessage() : call(method, await paramsFor(method)));
      must(error === undefined, `it answered ${show(error)}`);
    },
  }));

  const params = rows.params.map(({ method, param, ...shape }) => ({
    text: `${method} takes ${param}: ${shape.type}${shape.required ? ", and needs it" : ""}`,
    async look() {
      const usual = { agentName: await agent(), message: MESSAGE, channel: "audit", userId: "audit" };
      const value = param === "agentName" ? usual.agentName : param === "message" ? MESSAGE : "audit";
      const taken = await call(method, { ...usual, [param]: value });
      must(taken.error === undefined, `${show(value)} was answered ${show(taken.error)}`);
      const wrong = await call(method, { ...usual, [param]: wrongFor(shape) });
      must(wrong.error?.code === -32602, `another type was answered ${show(wrong.error ?? "with a result")}`);
      if (!shape.required) return;
      const { error } = await call(method, { ...usual, [param]: undefined });
      must(error?.code === ENVELOPE, `without it the answer is ${show(error ?? "a result")}`);
      must(String(error?.data.detail).includes(param), `error.data.detail does not name it: ${show(error?.data)}`);
    },
  }));
  const results = rows.results.map(({ method, field, type, accepts }) => ({
    text: `${method} answers with ${field}: ${accepts ? accepts.join(", ") : type}`,
    async look() {
      const { result, error } = await sentMessage();
      must(error === undefined, `it answered ${show(error)}`);
      must(isOf(type, at(result, field)), `${field} is ${show(at(result, field))}`);
      if (accepts) must(accepts.includes(at(result, field)), `${field} is ${show(at(result, field))}`);
    },
  }));

  const provoked: Record<string, () => Promise<RpcReply[]>> = {
    "parse-error": async () => [await sendRpc("{")],
    "invalid-request": async () => [await sendRpc("{}")],
    "method-not-found": async () => [await call("no.such.method")],
    "invalid-params": async () => [await call("agent.list", { surprise: true })],
    unauthenticated: () => Promise.all(rows.methods.map(({ method }) => call(method, {}, WRONG))),
  };
  const errors = rows.errors
    .filter(({ code }) => code !== undefined)
    .map(({ error, code, status, methods: of }) => {
      const text = `${error} has the code ${code}${of === "all" ? ", on each method" : ""}`;
      const provoke = provoked[error];
      if (!provoke) return { text, unseen: UNPROVOKED };
      const look = async () => {
        for (const reply of await provoke()) {
          must(reply.error?.code === code, `it answered ${show(reply.error ?? reply.result)}`);
          // Errors of one call among several are answered with 200.
          if (error === "unauthenticated") must(reply.httpStatus === status, `the status is ${reply.httpStatus}`);
        }
      };
      return { text, look };
    });

  const pushes = rows.pushes.map(({ push, because }) => ({
    text: `${push} is pushed when ${because}`,
    async look() {
      using socket = await gateway.openSocket();
      const { error } = await socket.call("rpc.subscribe", { gateway: null, agents: await agents() });
      must(error === undefined, `rpc.subscribe answered ${show(error)}`);
      if (push.startsWith("event.")) {
        const { json, ...reply } = await send("POST /hooks/wake", { text: MESSAGE, mode: "now" });
        must(reply.status === 200, `wake answered ${reply.status}`);
        await socket.pushed(push, ({ eventId }) => eventId === json?.eventId);
      } else {
        const { json, ...reply } = await send("POST /hooks/agent", { message: MESSAGE, session: HOOK_SESSION });
        must(reply.status === 200, `agent answered ${reply.status}`);
        await socket.pushed(push, ({ turnId }) => turnId === json?.turnId);
      }
    },
  }));

  const config = rows.config.map(({ key }) => ({
    text: `the configuration has ${key}`,
    unseen: "a configuration is not seen from outside; the project's own tests look at it",
  }));

  const parts: Record<string, ({ text: string } & ({ look: () => Promise<unknown> } | { unseen: string }))[]> = {
    "REST and webhooks: operations": operations,
    "REST and webhooks: fields of bodies": bodyFields,
    "REST and webhooks: fields of replies": replyFields,
    "REST and webhooks: tokens": tokens,
    "RPC: where it is": rpcPaths,
    "RPC: envelopes": envelopes,
    "RPC: methods": methods,
    "RPC: params and results of agent.sendMessage": [...params, ...results],
    "RPC: errors": errors,
    "WebSocket: pushes": pushes,
    "Webhooks: statuses": statuses,
    Configuration: config,
  };
  return Object.entries(parts).flatMap(([part, list]) => list.map((one) => ({ part, ...one })));
}

/** Removes what the audit created in the gateway, as far as its token allows. */
export async function clearUp({ call }: Gateway): Promise<void> {
  const { result } = await call("session.list", {}).catch(() => ({ result: undefined }));
  const sessions = (result as { sessions?: { sessionId: string }[] } | undefined)?.sessions ?? [];
  const own = sessions
    .map(({ sessionId }) => sessionId)
    .filter((id) => [SESSION, HOOK_SESSION].includes(id) || id.endsWith(":audit"));
  for (const sessionId of own) await call("session.delete", { sessionId }).catch(() => undefined);
}
