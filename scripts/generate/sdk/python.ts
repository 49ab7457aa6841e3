import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Output } from "../output.ts";
import { printApiPage } from "./api-page.ts";
import type { Call, SdkDescription } from "./description.ts";
import { type Argument, argumentsOf, fieldsOf, printArgument } from "./python-arguments.ts";
import { printErrors } from "./python-errors.ts";
import { header, importOf, typingOf } from "./python-text.ts";
import { capital, docstring, namedShapes, printReplyShape, printShape, printType, snake } from "./python-types.ts";
import { namesIn, type Shape, type Type } from "./shapes.ts";
import { syncOf } from "./unasync.ts";

const FOLDER = "clients/python";
const PACKAGE = "src/agent_gateway";

/** The package of the Python client. */
export function pythonSdk(sdk: SdkDescription, version: string): Output {
  const shapes = sdk.rest.shapes;
  const output: Output = {
    [`${PACKAGE}/errors.py`]: printErrors(sdk),
    [`${PACKAGE}/_fields.py`]: printFields(sdk),
    [`${PACKAGE}/rest_types.py`]: printTypes("openapi.yaml", shapes, sentBy(sdk.rest)),
    [`${PACKAGE}/rpc_types.py`]: printTypes("openrpc.json", sdk.rpc.shapes, sentBy(sdk.rpc)),
    [`${PACKAGE}/push_types.py`]: printPushTypes(sdk),
    [`${PACKAGE}/_operations.py`]: printOperations(sdk),
    ...inBothForms("rest.py", printRest(sdk.rest.calls, shapes)),
    ...inBothForms("rpc.py", printRpc(sdk.rpc.calls, sdk.rpc.shapes)),
    "api.md": printApiPage(sdk, {
      language: "python",
      intro: INTRO,
      socket: SOCKET,
      failures: FAILURES,
      printType: (type) => (type.kind === "record" ? "dict" : printType(type)),
      callOf: ({ noun, verb }) => `${snake(noun)}.${snake(verb)}`,
      fieldOf: (call, name) => (call.token === "rpc" || call.body === null ? snake(name) : name),
      signatureOf: (call) =>
        `(${argumentsOf(call, call.token === "rpc" ? sdk.rpc.shapes : shapes)
          .map(printArgument)
          .join(", ")}) -> ${syncOf(replyType(call))}`,
      docOf,
    }),
    ...copiedRuntime(version),
  };
  return Object.fromEntries(Object.entries(output).map(([path, content]) => [`${FOLDER}/${path}`, content]));
}

function inBothForms(name: string, asynchronous: string): Output {
  return {
    [`${PACKAGE}/async_${name}`]: asynchronous,
    [`${PACKAGE}/${name}`]: syncOf(asynchronous),
  };
}

/** Code that does not depend on the contract. The modules of `_both` are written once, with async and await. */
function copiedRuntime(version: string): Output {
  const folder = fileURLToPath(new URL("../runtime/python/", import.meta.url));
  const output: Output = {};
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name.endsWith(".pyc")) continue;
    const name = relative(folder, join(entry.parentPath, entry.name));
    const source = readFileSync(folder + name, "utf8").replaceAll("@VERSION@", version);
    const copied = (text: string, how = "Copied"): string =>
      `# ${how} by "npm run generate" from scripts/generate/runtime/python/${name}; do not edit.\n${text}`;
    if (name === "py.typed") output[`${PACKAGE}/${name}`] = source;
    else if (!name.endsWith(".py")) output[name] = source;
    else if (name === "build_backend.py") output[name] = copied(source);
    else if (name.startsWith("_both/")) {
      output[`${PACKAGE}/${name.replace("_both", "_async")}`] = copied(source);
      output[`${PACKAGE}/${name.replace("_both", "_sync")}`] = copied(syncOf(source), "Made");
    } else output[`${PACKAGE}/${name}`] = copied(source);
  }
  return output;
}

/** The names of the shapes that callers send. They are dicts; all others are objects of replies. */
function sentBy({ calls, shapes }: SdkDescription["rest"]): Set<string> {
  const sent = new Set<string>();
  const visit = (name: string): void => {
    if (sent.has(name)) return;
    sent.add(name);
    const shape = shapes.find((one) => one.name === name);
    if (shape) for (const next of namesIn(shape.type)) visit(next);
  };
  for (const { path, params, body } of calls) {
    for (const { type } of [...path, ...params]) for (const name of namesIn(type)) visit(name);
    if (body) visit(body.shape);
  }
  return sent;
}

function printTypes(spec: string, shapes: Shape[], sent: Set<string>, more = ""): string {
  const [aliases, classes] = [[] as string[], [] as string[]];
  for (const shape of namedShapes(shapes)) {
    const isNested = !shapes.some(({ name }) => name === shape.name);
    const isSent = sent.has(shape.name) || (isNested && [...sent].some((name) => shape.name.startsWith(name)));
    const printed = shape.type.kind === "record" && !isSent ? printReplyShape(shape) : printShape(shape);
    (shape.type.kind === "record" ? classes : aliases).push(printed);
  }
  const code = `${aliases.join("\n")}\n\n${classes.join("\n\n")}${more}`;
  return `${header(spec, "The shapes of the contract. A gateway may send fields that are not among these.")}\n${typingOf(code)}\nfrom ._reply import Reply\n\n${code}`;
}

function printPushTypes({ pushes: { names, shapes } }: SdkDescription): string {
  const contents = names.map(({ name, doc, type }) => ({ name: `${capital(name)}Params`, doc, type }));
  const pushes = names.map(
    ({ name }) => `class ${capital(name)}Push(Reply):
    jsonrpc: Literal["2.0"]
    method: Literal["${name}"]
    params: ${capital(name)}Params
`,
  );
  const union = `\n\nPush = Union[\n${names.map(({ name }) => `    ${capital(name)}Push,\n`).join("")}]\n"""A push as the socket carries it."""\n`;
  const sent = new Set(["Subscribe", "Unsubscribe"].filter((name) => shapes.some((shape) => shape.name === name)));
  return printTypes("pushes.yaml", [...shapes, ...contents], sent, `\n\n${pushes.join("\n\n")}${union}`);
}

/** Every field of a reply, as an attribute. */
function printFields({ rest, rpc, pushes }: SdkDescription): string {
  const names = new Set<string>(["event", "id", "data", "jsonrpc", "method", "params"]);
  const types = [...rest.shapes, ...rpc.shapes, ...pushes.shapes, ...pushes.names].map(({ type }) => type);
  for (const type of types) for (const name of fieldNamesIn(type)) names.add(snake(name));
  return `${header("", "The fields that replies have.")}
FIELDS = frozenset(
    [
${[...names]
  .sort()
  .map((name) => `        "${name}",\n`)
  .join("")}    ]
)
`;
}

function fieldNamesIn(type: Type): string[] {
  if (type.kind === "list" || type.kind === "map") return fieldNamesIn(type.of);
  if (type.kind === "union") return type.of.flatMap(fieldNamesIn);
  return type.kind === "record" ? type.fields.flatMap(({ name, type: of }) => [name, ...fieldNamesIn(of)]) : [];
}

function replyType({ kind, reply, page }: Call): string {
  if (kind === "stream") return "AsyncTurnStream";
  const data = reply ? printType(reply) : "None";
  return page ? `AsyncPages[${data}, ${printType(page.item)}]` : data;
}

/** The description of a call, with the addition of its kind. */
function docOf({ summary, doc, kind }: Call): string {
  const added = {
    plain: "",
    page: "Iterate over it to read every page; `data` is the page itself.",
    send: "It waits until the turn has ended, however long that takes.",
    start: "It answers at once with the turn's id, while the turn goes on.",
    stream: "The reply comes as events. A stream that is lost goes on where it broke.",
  }[kind];
  const words = kind === "plain" || kind === "page" ? doc : "";
  return [`${summary}.`, added, words]
    .filter((text) => text !== "")
    .join("\n\n")
    .trim();
}

/** Streams and lists make their call at the first read. */
function isAwaited({ kind }: Call): boolean {
  return kind !== "stream" && kind !== "page";
}

function printMethod(call: Call, shapes: Shape[], statement: string): string {
  const all = argumentsOf(call, shapes);
  const byPlace = all.filter(({ place }) => place === "path" || place === "body");
  const byName = all.filter(({ place }) => place !== "path" && place !== "body");
  const parts = [
    "self",
    ...byPlace.map(printArgument),
    ...(byName.length > 0 ? ["*", ...byName.map(printArgument)] : []),
  ];
  const def = isAwaited(call) ? "async def" : "def";
  const line = `    ${def} ${snake(call.verb)}(${parts.join(", ")}) -> ${replyType(call)}:\n`;
  const head =
    line.length <= 120
      ? line
      : `    ${def} ${snake(call.verb)}(\n${parts.map((part) => `        ${part},\n`).join("")}    ) -> ${replyType(call)}:\n`;
  return `${head}${docstring(docOf(call), "        ")}        ${statement}\n`;
}

/** The fields of a call as a dict, with the nullable ones separately: an expression, and the statement before it if it is long. */
function printGiven(fields: Argument[], more: string[] = []): { before: string; fields: string } {
  const entry = ({ contract, name }: Argument): string => `"${contract}": ${name}`;
  const plain = [...fields.filter(({ isNullable }) => !isNullable).map(entry), ...more];
  const nullable = fields.filter(({ isNullable }) => isNullable).map(entry);
  const dicts = nullable.length > 0 ? [plain, nullable] : [plain];
  const short = `given(${dicts.map((entries) => `{${entries.join(", ")}}`).join(", ")})`;
  if (short.length <= 60) return { before: "", fields: short };
  const long = dicts.map(
    (entries) => `            {\n${entries.map((one) => `                ${one},\n`).join("")}            },\n`,
  );
  return { before: `fields = given(\n${long.join("")}        )\n        `, fields: "fields" };
}

function constantOf({ noun, verb }: Call): string {
  return `${snake(noun)}_${snake(verb)}`.toUpperCase();
}

function restStatement(call: Call, shapes: Shape[]): string {
  const all = argumentsOf(call, shapes);
  const fields = all.filter(({ place }) => place === "field");
  const path = all.filter(({ place }) => place === "path").map(({ name }) => `${name}, `);
  const [whole] = all.filter(({ place }) => place === "body");
  const key = call.idempotent ? ["key=idempotency_key"] : [];
  const wait = call.kind === "start" ? [`"wait": False`] : call.kind === "stream" ? [`"stream": True`] : [];
  const given = whole ? { before: "", fields: whole.name } : printGiven(fields, wait);
  const operation = `_operations.${constantOf(call)}`;
  const places = path.length > 0 ? [`(${path.join("").trimEnd()})`] : [];
  const body = `body=${given.fields}`;
  const joined = (name: string, ...parts: string[]): string =>
    `${given.before}return ${isAwaited(call) ? "await " : ""}self._http.${name}(${parts.join(", ")})`;
  switch (call.kind) {
    case "page":
      return joined("pages", operation, `"${call.page?.items}"`, `query=${given.fields}`);
    case "send":
      return joined("send", operation, body, ...key);
    case "stream":
      return call.body ? joined("stream", operation, body, ...key) : joined("follow", operation, ...places, "after");
    default: {
      const sent = call.body ? [body] : fields.length > 0 ? [`query=${given.fields}`] : [];
      return joined("call", operation, ...places, ...sent, ...key);
    }
  }
}

function printOperation(call: Call): string {
  const { http, token, idempotent, repeatable, text, replyStatuses, noun, verb } = call;
  const facts = [
    ...(idempotent ? ["is_idempotent=True"] : []),
    ...(repeatable ? ["is_repeatable=True"] : []),
    ...(text ? ["is_text=True"] : []),
    ...(call.reply === null ? ["is_empty=True"] : []),
    ...(replyStatuses.length > 0 ? [`reply_statuses=(${replyStatuses.join(", ")},)`] : []),
  ];
  const line = [`"${noun}.${verb}"`, `"${http.method}"`, `"${http.path}"`, `"${token}"`, ...facts].join(", ");
  return `${constantOf(call)} = Operation(${line})`;
}

function byNoun(calls: Call[]): [noun: string, calls: Call[]][] {
  const nouns = new Map<string, Call[]>();
  for (const call of calls) nouns.set(call.noun, [...(nouns.get(call.noun) ?? []), call]);
  return [...nouns];
}

/** The shapes in the annotations of calls. */
function namesOf(calls: Call[], shapes: Shape[]): string[] {
  return calls.flatMap(({ path, params, body, reply, page, kind }) => [
    ...[...path, ...(body ? (fieldsOf(body.shape, shapes) ?? []) : params)].flatMap(({ type }) => namesIn(type)),
    ...(body && fieldsOf(body.shape, shapes) === undefined ? [body.shape] : []),
    ...(reply && kind !== "stream" ? namesIn(reply) : []),
    ...(page ? namesIn(page.item) : []),
  ]);
}

function printRest(calls: Call[], shapes: Shape[]): string {
  const nouns = byNoun(calls);
  const classes = nouns.map(
    ([noun, verbs]) => `class Async${capital(noun)}Calls:
    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

${verbs.map((call) => printMethod(call, shapes, restStatement(call, shapes))).join("\n")}`,
  );
  const code = `${classes.join("\n\n")}

class AsyncRestCalls:
    """The REST calls, the webhooks, and the pages that report the gateway's health."""

    def __init__(self, http: AsyncHttp) -> None:
${nouns.map(([noun]) => `        self.${snake(noun)} = Async${capital(noun)}Calls(http)\n`).join("")}`;
  return `${header("openapi.yaml", "The REST calls and the webhooks.")}
${typingOf(code)}
from . import _operations
from ._async.http import AsyncHttp
from ._async.pages import AsyncPages
from ._async.turn_stream import AsyncTurnStream
from ._requests import OMIT, Omit, given
${importOf(".rest_types", namesOf(calls, shapes))}
${code}`;
}

function printOperations({ rest, rpc }: SdkDescription): string {
  const idempotent = rpc.calls.filter((call) => call.idempotent).map(({ contract }) => `"${contract}"`);
  return `${header("openapi.yaml", "The operations, as the clients make them.")}
from ._requests import Operation

${rest.calls.map(printOperation).join("\n")}

IDEMPOTENT_METHODS = frozenset([${idempotent.join(", ")}])
"""The RPC methods that take an idempotency key."""
`;
}

function printRpc(calls: Call[], shapes: Shape[]): string {
  const nouns = byNoun(calls);
  const statement = (call: Call): string => {
    const { before, fields } = printGiven(argumentsOf(call, shapes));
    return call.page
      ? `${before}return self._rpc.pages("${call.contract}", "${call.page.items}", ${fields})`
      : `${before}return await self._rpc.call("${call.contract}", ${fields})`;
  };
  const classes = nouns.map(
    ([noun, verbs]) => `class Async${capital(noun)}Methods:
    def __init__(self, rpc: AsyncRpcCalls) -> None:
        self._rpc = rpc

${verbs.map((call) => printMethod(call, shapes, statement(call))).join("\n")}`,
  );
  const code = `${classes.join("\n\n")}

class _AsyncMethods(AsyncRpcCalls):
    """The methods by noun and verb."""

    def __init__(self, settings: Settings, send: AsyncSend) -> None:
        super().__init__(settings, send, IDEMPOTENT_METHODS)
${nouns.map(([noun]) => `        self.${snake(noun)} = Async${capital(noun)}Methods(self)\n`).join("")}

class AsyncRpc(_AsyncMethods):
    """The RPC methods over HTTP, and by \`\`connect\`\` over a WebSocket."""

    def __init__(self, settings: Settings, transport: AsyncTransport) -> None:
        super().__init__(settings, async_send_by_http(settings, transport))
        self._transport = transport

    def connect(self) -> AsyncRpcSocket:
        """A WebSocket with the same methods, and with pushes. It is opened by the first call."""
        return AsyncRpcSocket(self._settings, self._transport)


class AsyncRpcSocket(_AsyncMethods, AsyncSocketCalls):
    """The RPC methods over one WebSocket, and pushes."""

    def __init__(self, settings: Settings, transport: AsyncTransport) -> None:
        connection = AsyncConnection(settings, transport)
        _AsyncMethods.__init__(self, settings, connection.send)
        AsyncSocketCalls.__init__(self, connection)

    async def __aenter__(self) -> AsyncRpcSocket:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()
`;
  return `${header("openrpc.json", "The RPC methods.")}
${typingOf(code)}
from ._async.connection import AsyncConnection
${code.includes("AsyncPages") ? "from ._async.pages import AsyncPages\n" : ""}from ._async.rpc import AsyncRpcCalls, AsyncSend, async_send_by_http
from ._async.socket_calls import AsyncSocketCalls
from ._async.transport import AsyncTransport
from ._operations import IDEMPOTENT_METHODS
${importOf("._requests", ["given", ...(code.includes("OMIT") ? ["OMIT", "Omit"] : [])])}from ._settings import Settings
${importOf(".rpc_types", namesOf(calls, shapes))}
${code}`;
}

const INTRO = `# Every call of \`agent_gateway\`

\`gateway\` is a \`Gateway\`. The values of a path go first, and all other arguments go by name. The types are in \`agent_gateway.rest_types\` and
\`agent_gateway.rpc_types\`. An \`AsyncGateway\` has the same calls: await them, and read streams, lists and pushes with \`async for\`.
\`gateway.with_options(timeout=…, max_retries=…, headers=…, idempotency_key=…)\` is the same client with other options.`;

const SOCKET = `| call | |
|---|---|
| \`subscribe(*, sessions, agents, gateway, deliveries)\` | begins streams, or goes on with them behind a cursor |
| \`unsubscribe(*, sessions, agents, gateway, deliveries)\` | ends them |
| \`pushes()\` | every push from now on, with \`for\` |
| \`close()\` | closes the socket; \`with\` does it, too |`;

const FAILURES = `Every failed call raises a \`GatewayError\`. Each name has a class: \`session-busy\` is \`SessionBusyError\`. Their parents are
\`BadRequestError\` (400), \`AuthenticationError\` (401), \`PermissionDeniedError\` (403), \`NotFoundError\` (404), \`ConflictError\` (409), \`TooManyRequestsError\` (429),
\`ServerError\` (500 and more), and above these \`APIStatusError\`. The client's own are
\`ConnectionFailedError\`, \`TimedOutError\`, \`NotAGatewayError\`, \`NoTokenError\`, \`BadSignatureError\` and \`ClosedError\`.`;
