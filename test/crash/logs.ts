import { readFileSync } from "node:fs";
import { type Broken, breach } from "./breaches.ts";
import type { GatewayNode } from "./fleet.ts";
import { SECRETS } from "./requests.ts";

/** Any token, also a wrong one, which may be a misspelt good one. */
const TOKEN = /bearer +[\w.~+/-]{6,}|guess-\d+-of-somebody/i;

export type LogsOptions = {
  nodes: readonly Pick<GatewayNode, "log" | "logFile" | "url">[];
  /** Other files that must not contain a secret: a server's log. */
  files?: readonly string[];
  /** In addition to those of every run. */
  secrets?: readonly string[];
};

export function verifyLogs({ nodes, files = [], secrets = [] }: LogsOptions): Broken[] {
  const broken: Broken[] = [];
  const hidden = [
    ...Object.entries(SECRETS),
    ...secrets.map((secret, n) => [`another secret (${n})`, secret] as const),
  ];
  const texts = [
    ...nodes.map((node) => [node.logFile, node.log()]),
    ...files.map((file) => [file, readFileSync(file, "latin1")]),
  ];
  for (const [file, text] of texts as [string, string][]) {
    for (const [name, secret] of hidden)
      if (text.includes(secret)) broken.push(breach("no secret in the log", "it is there in clear", name, file));
    const [token] = TOKEN.exec(text) ?? [];
    if (token) broken.push(breach("no secret in the log", "a token is there", token, file));
  }
  for (const { url, log } of nodes.map((node) => ({ url: node.url, log: node.log() })))
    for (const line of log.split("\n"))
      if (line.includes('"event":"unexpected.error"'))
        broken.push(breach("nothing unexpected happens", line.slice(0, 1_000), url));
  return broken;
}
