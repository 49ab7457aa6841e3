/** The suffixes of the old names of variables. They are read for one more version, with a warning. */
const OLD_ENDS: Record<string, string> = {
  GATEWAY_URL: "URL",
  REST_API_KEY: "KEY",
  RPC_TOKEN: "RPC_TOKEN",
  WEBHOOK_TOKEN: "WEBHOOK_TOKEN",
};

/** A variable of the environment under its name, or under its old one. An empty variable is not set. */
export function readVariable(
  env: Record<string, string | undefined>,
  name: string,
  warn: (words: string) => void,
  prefix = "AGENT_GATEWAY_",
): string | undefined {
  if (env[name]) return env[name];
  const old = `${prefix}${OLD_ENDS[name] ?? name}`;
  if (!env[old]) return undefined;
  warn(`${old} is deprecated. Set ${name}.`);
  return env[old];
}
