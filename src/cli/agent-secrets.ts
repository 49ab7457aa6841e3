import type { Config } from "#config/config.ts";
import { isSecretKey } from "#observe/redact.ts";

type Named = Readonly<Record<string, string>>;

/** What agents, providers of models and servers of tools are given to prove who they are. */
export const agentSecretsOf = ({
  agents,
  providers,
  tools,
}: Pick<Config, "agents" | "providers" | "tools">): string[] => [
  ...Object.values(providers).flatMap(({ apiKey, headers }) => [apiKey ?? [], secretsIn(headers)].flat()),
  ...Object.values(agents).flatMap(({ http, a2a, command, acp }) => [
    ...(http?.secret === undefined ? [] : [http.secret]),
    ...[http?.headers, a2a?.headers, command?.env, acp?.env].flatMap((named) => secretsIn(named ?? {})),
  ]),
  ...Object.values(tools).flatMap((server) => secretsIn(server.type === "http" ? server.headers : server.env)),
];

/** The values of those whose names say so; of `Bearer …`, what comes after it, too. */
const secretsIn = (named: Named): string[] =>
  Object.entries(named).flatMap(([name, value]) => {
    if (!isSecretKey(name) && !/key$/i.test(name)) return [];
    return [value, value.slice(value.indexOf(" ") + 1)];
  });
