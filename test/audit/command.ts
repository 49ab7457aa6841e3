import { parseArgs } from "node:util";
import { readVariable } from "#cli/variables.ts";
import { createGateway, type Target } from "./gateway.ts";
import { audit, linesOf, type Row, summaryOf } from "./report.ts";
import { clearUp, requirementsOf } from "./requirements.ts";

const HELP = `npm run audit -- URL [options]

Looks at each requirement of the interface in a gateway that runs, and prints what it found. It sends about 30 short messages and
webhooks to the gateway's first agent, reloads the configuration, and deletes its sessions (audit, webhook:audit) in the end.

  URL               the address of the gateway, such as http://127.0.0.1:18789
  --rpc-url URL     the address of RPC, where it is another
  --hooks-url URL   that of the webhooks with their path (default: URL/hooks)
  --flood           also send webhooks until the rate limit refuses them; senders with this address or token wait for its window then
  --json            print one JSON document
  --help            print this

Environment:
  REST_API_KEY   a REST key
  RPC_TOKEN      an RPC token with the permission *
  WEBHOOK_TOKEN  the token of the webhooks

  NODE_EXTRA_CA_CERTS    the file of an authority of your own, for https

Ends with 1 when a requirement fails, with 2 when it could not begin.
`;

class Usage extends Error {}

type Env = Readonly<Record<string, string | undefined>>;

function readOptions(
  args: readonly string[],
  env: Env,
  complain: (text: string) => void,
): { target: Target; flood: boolean; json: boolean } | undefined {
  const [text, flag] = [{ type: "string" }, { type: "boolean" }] as const;
  const options = { "rpc-url": text, "hooks-url": text, flood: flag, json: flag, help: flag };
  const { values, positionals } = parse(() => parseArgs({ args: [...args], options, allowPositionals: true }));
  if (values.help) return undefined;
  const [given, ...more] = positionals;
  if (given === undefined || more.length > 0)
    throw new Usage("name one gateway: npm run audit -- http://127.0.0.1:18789");
  const url = addressOf("URL", given);
  const rpcUrl = addressOf("--rpc-url", values["rpc-url"] ?? url);
  const hooksUrl = addressOf("--hooks-url", values["hooks-url"] ?? `${url}/hooks`);
  const [key, rpcToken, webhookToken] = ["REST_API_KEY", "RPC_TOKEN", "WEBHOOK_TOKEN"].map((name) =>
    secretOf(name, env, complain),
  );
  const target = { url, rpcUrl, hooksUrl, key, rpcToken, webhookToken } as Target;
  return { target, flood: values.flood === true, json: values.json === true };
}

function parse<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Usage((error as Error).message);
  }
}

function addressOf(name: string, text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new Usage(`${name}: ${text} is not an address; write http://HOST:PORT`);
  return text.replace(/\/+$/, "");
}

function secretOf(name: string, env: Env, complain: (text: string) => void): string {
  const secret = readVariable(env, name, complain, "GATEWAY_");
  if (!secret) throw new Usage(`${name} is not set: it has to hold a secret that the gateway takes (see --help)`);
  return secret;
}

/** The standard output and error of a command. */
type Out = { print: (text: string) => void; complain: (text: string) => void };

/** Runs the command with its arguments, and returns its exit code. */
export async function auditCommand(args: readonly string[], env: Env, out: Out): Promise<number> {
  try {
    return await run(args, env, out);
  } catch (error) {
    if (!(error instanceof Usage)) throw error;
    out.complain(error.message);
    return 2;
  }
}

async function run(args: readonly string[], env: Env, { print, complain }: Out): Promise<number> {
  const options = readOptions(args, env, complain);
  if (!options) {
    print(HELP);
    return 0;
  }
  const { target, flood, json } = options;
  const say = (line: string): void => {
    if (!json) print(line);
  };
  const gateway = createGateway(target, say);
  const info = await gateway.call("system.info").catch((error) => {
    throw new Usage(error.message);
  });
  if (info.error)
    throw new Usage(
      `system.info answered ${info.error.code} ${info.error.message}: ${info.error.data.detail ?? "the token needs the permission *"}`,
    );
  say(`${target.url}, version ${(info.result as { version?: string }).version}`);
  let before: Row | undefined;
  const found = await audit(requirementsOf(gateway, { flood }), (row) => {
    for (const line of linesOf(row, before)) say(line);
    before = row;
  });
  await clearUp(gateway);
  say(`\n${summaryOf(found)}`);
  if (json) print(JSON.stringify({ url: target.url, requirements: found }, null, 2));
  return found.some(({ outcome }) => outcome === "fails") ? 1 : 0;
}
