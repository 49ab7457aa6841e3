import type { TryOut } from "#config/load.ts";
import { asTyped } from "./typed.ts";

/** The gateway's address for callers on this machine, the addresses where it listens, and a code that signs a browser in. */
type Place = { localUrl: string; urls: readonly string[]; code: string };

/**
 * The text on the terminal after a start without a configuration: the reason for the try-out, the gateway's addresses, its secrets, and calls to
 * paste. `folder` is the folder without a configuration.
 */
export function banner(
  { localUrl: url, urls, code }: Place,
  { REST_API_KEY, RPC_TOKEN, WEBHOOK_TOKEN, CONSOLE_TOKEN }: TryOut,
  folder: string,
): string {
  return `
No configuration was found: there is no gateway.json5 in ${folder}.
\`${asTyped("agent-gateway init")}\` writes one there. To use another file, pass --config FILE or set GATEWAY_CONFIG. This is a try-out:

The gateway runs at ${url} with one agent, main, which repeats each message.${noteOf(url, urls)}
Everything is lost when it stops. These secrets are only for this run:

  REST_API_KEY   ${REST_API_KEY}
  RPC_TOKEN      ${RPC_TOKEN}
  WEBHOOK_TOKEN  ${WEBHOOK_TOKEN}
  CONSOLE_TOKEN  ${CONSOLE_TOKEN}

See what happens, and create keys, in a browser. The link works once, within a minute; later, sign in with CONSOLE_TOKEN:
  ${url}/console#code=${code}
Send a message:
  curl ${url}/api/v1/chat/send -H 'Authorization: Bearer ${REST_API_KEY}' -H 'Content-Type: application/json' -d '{"message":"Hello"}'
The same over JSON-RPC:
  curl ${url}/rpc -H 'Authorization: Bearer ${RPC_TOKEN}' -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":"1","method":"agent.sendMessage","params":{"agentName":"main","message":"Hello","wait":true}}'
Start a turn by a webhook:
  curl ${url}/hooks/agent -H 'x-gateway-token: ${WEBHOOK_TOKEN}' -H 'Content-Type: application/json' -d '{"message":"Hello"}'
Read about every call, in a browser:
  ${url}/docs

`;
}

function noteOf(localUrl: string, [listening]: readonly string[]): string {
  return localUrl === listening
    ? ""
    : `\nIt listens on all addresses of this machine (${listening}); from others it accepts tokens only over TLS.`;
}
