import type { TryOut } from "#config/config.ts";

/** Where the gateway is: as one calls it from here, and as it listens. */
type Place = { localUrl: string; urls: readonly string[] };

/** What a start without a configuration tells the person at the terminal: where it is, its secrets, and calls to paste. */
export const banner = (
  { localUrl: url, urls }: Place,
  { restKey, rpcToken, webhookToken, consoleToken }: TryOut,
): string => `
The gateway runs at ${url} with one agent, main, that repeats what it is told.${noteOf(url, urls)}
Nothing is kept when it stops. These secrets are for this run alone:

  REST_API_KEY   ${restKey}
  RPC_TOKEN      ${rpcToken}
  WEBHOOK_TOKEN  ${webhookToken}
  CONSOLE_TOKEN  ${consoleToken}

Send a message:
  curl ${url}/api/v1/chat/send -H 'Authorization: Bearer ${restKey}' -H 'Content-Type: application/json' -d '{"message":"Hello"}'
The same over JSON-RPC:
  curl ${url}/rpc -H 'Authorization: Bearer ${rpcToken}' -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":"1","method":"agent.sendMessage","params":{"agentName":"main","message":"Hello","wait":true}}'
Start a turn by a webhook:
  curl ${url}/hooks/agent -H 'x-gateway-token: ${webhookToken}' -H 'Content-Type: application/json' -d '{"message":"Hello"}'

`;

const noteOf = (localUrl: string, [listening]: readonly string[]): string =>
  localUrl === listening
    ? ""
    : `\nIt listens on all addresses of this machine (${listening}); from others it takes tokens over TLS alone.`;
