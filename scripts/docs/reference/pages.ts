import type { Bundle } from "../../generate/bundle.ts";
import type { Contract } from "../../generate/contract.ts";
import { object, text } from "../../generate/json.ts";
import { describeSdk } from "../../generate/sdk/description.ts";
import { shapeSections } from "./fields.ts";
import { type Group, groupOf } from "./groups.ts";
import { authenticationOf, httpGroups } from "./http.ts";
import { pushGroups, rpcGroups } from "./rpc.ts";
import { walkthroughs } from "./walkthroughs.ts";
import { block, code, paragraphs } from "./words.ts";

const ABOUT_HOOKS = ["hooks", "announcements"];

/** The pages that are generated from the contract, as Markdown by their name. A heading may end in its own address: `{#chat.send}`. */
export function referencePages(contract: Contract): Record<string, string> {
  const { openapi, openrpc, asyncapi, errors, pushes, socketCalls } = contract;
  const sdk = describeSdk(contract);
  const http = httpGroups(openapi, sdk);
  const ofHttp = new Set(http.flatMap(errorsIn));
  const ofCalls = new Set([...NO_METHOD, ...rpcGroups(openrpc, sdk).flatMap(errorsIn)]);
  const isHooks = ({ name }: Group) => ABOUT_HOOKS.includes(name);
  return {
    walkthroughs: walkthroughs(openapi),
    authentication: paragraphs(
      "# Authentication",
      "Each surface has its own tokens, so a leaked token opens only one surface. Tokens never go into a URL.",
      "A request with a missing or wrong token gets 401 on every surface. Over RPC the error is -32000.",
      "## Schemes",
      authenticationOf(openapi),
    ),
    rest: page(
      paragraphs("# REST", text(object(openapi.document.info).description), CLIENTS),
      http.filter((group) => !isHooks(group)),
      { prefix: "http", openapi },
    ),
    hooks: page(
      paragraphs(
        "# Webhooks and announcements, call by call",
        "[The guide](webhooks.html) has recipes for GitHub, Stripe, Slack and others, and [announcements](announcements.html) describes the requests that the gateway sends.",
      ),
      http.filter(isHooks),
      { prefix: "http", openapi },
    ),
    rpc: page(
      paragraphs("# RPC methods", text(object(openrpc.document.info).description), CLIENTS),
      rpcGroups(openrpc, sdk),
      { prefix: "rpc", openapi: openrpc },
    ),
    pushes: page(
      paragraphs("# Pushes", text(object(asyncapi.document.info).description), SUBSCRIBE),
      pushGroups(asyncapi, pushes, socketCalls),
      { prefix: "push", openapi: asyncapi },
    ),
    errors: paragraphs(
      "# Errors",
      "REST and webhooks answer an error as `application/problem+json` (RFC 9457): the last part of its `type` is the name of an entry on this page. RPC has the name in `error.data.name`. Programs should use the name, which never changes.",
      "`/rpc` answers a call with HTTP 200, even if the call failed. Only a request that is refused before its calls are read has another HTTP status, for instance 401 or 413.",
      ...Object.entries(errors).map(([name, { code: rpc, status, title, meaning, remedy, retry }]) => {
        const isOfCalls = ofCalls.has(name) && !BEFORE_CALLS.includes(name);
        const codes = [
          ...(isOfCalls && !ofHttp.has(name) ? [] : [`HTTP ${status}`]),
          ...(rpc === null ? [] : [`RPC ${rpc}${isOfCalls ? " (with HTTP 200)" : ""}`]),
          ...(retry ? ["may succeed later, after `Retry-After`"] : []),
        ];
        return paragraphs(
          `## ${name} {#${name}}`,
          `${title}. ${codes.join(" · ")}.`,
          `**Cause.** ${meaning}`,
          remedy === "" ? "" : `**What to do.** ${remedy}`,
        );
      }),
    ),
  };
}

/** Errors of a call that names no method, or is not JSON. */
const NO_METHOD = ["parse-error", "method-not-found"];
/** Errors of methods that are returned before any call is read. */
const BEFORE_CALLS = ["unauthenticated", "tls-required"];
function errorsIn({ entries }: Group): string[] {
  return entries.flatMap(({ errors }) => errors);
}

function page(intro: string, groups: Group[], { prefix, openapi }: { prefix: string; openapi: Bundle }): string {
  const calls = groups.map(groupOf).join("\n\n");
  const shapes = shapeSections({ prefix, shapes: openapi.components.schemas ?? {} }, calls);
  return paragraphs(intro, calls, ...(shapes.length === 0 ? [] : ["## Shapes {#shapes}", ...shapes]));
}

const CLIENTS = paragraphs(
  "The examples use the clients for [TypeScript](typescript.html) and [Python](python.html), which read the address and the tokens from the environment:",
  block("sh", `export GATEWAY_URL=http://127.0.0.1:18789 REST_API_KEY=… RPC_TOKEN=…`, "curl"),
  block("ts", `import { Gateway } from "@agent-gateway/client";\n\nconst gateway = new Gateway();`, "TypeScript"),
  block("python", "from agent_gateway import Gateway\n\ngateway = Gateway()", "Python"),
);

const SUBSCRIBE = paragraphs(
  `The guide [WebSocket](websocket.html) shows a conversation message by message. With the clients, ${code("subscribe")} subscribes to streams:`,
  block(
    "ts",
    `await using socket = gateway.rpc.connect();
await socket.subscribe({ agents: ["main"] });
for await (const push of socket.pushes()) console.log(push.method, push.params);`,
    "TypeScript",
  ),
  block(
    "python",
    `with gateway.rpc.connect() as socket:
    socket.subscribe(agents=["main"])
    for push in socket.pushes():
        print(push["method"], push["params"])`,
    "Python",
  ),
);
