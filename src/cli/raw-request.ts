import type { Calling } from "./calling.ts";
import { tokenFor } from "./credentials.ts";
import { CliError, causeOf, LIMITED, NOT_ALLOWED, NOT_FOUND, UNREACHABLE } from "./failures.ts";
import { oneLine } from "./output.ts";
import { print, say } from "./terminal.ts";
import { headersOf } from "./values.ts";

type RawRequest = { method: string; path: string; body: string | undefined; headers: readonly string[] };

/** Sends a request unchanged, and prints the answer. A refusal is printed too, and sets the exit code. */
export async function sendRaw(
  { address, options, signal }: Calling<{ include?: boolean }>,
  { method, path, body, headers: own }: RawRequest,
): Promise<void> {
  const headers = new Headers({ accept: "application/json, */*" });
  const token = await tokenFor(address, { method, path: path.replace(/[?#].*/s, ""), body });
  if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
  if (body !== undefined) headers.set("content-type", "application/json");
  for (const [name, value] of Object.entries(headersOf(own))) headers.set(name, value);
  const response = await fetch(address.url + path, {
    method,
    headers,
    redirect: "manual",
    signal,
    ...(body === undefined ? {} : { body }),
  }).catch((error: Error) => {
    if (signal.aborted) throw error;
    throw new CliError(
      `No answer from ${address.url}: ${causeOf(error)}.`,
      UNREACHABLE,
      "agent-gateway serve, or name another gateway: --url URL",
    );
  });
  if (options.include) {
    print(`HTTP ${response.status}`);
    for (const [name, value] of response.headers) print(`${name}: ${oneLine(value)}`);
    print("");
  }
  const { textOf } = await import("#generated/clients/typescript/src/body.ts");
  const text = await textOf(response).catch((error: Error) => {
    if (signal.aborted) throw error;
    throw new CliError(
      `The answer from ${address.url} cannot be read: ${error.message}.`,
      UNREACHABLE,
      "agent-gateway doctor",
    );
  });
  if (text !== "") print(indented(text, response.headers.get("content-type") ?? ""));
  if (response.ok) return;
  const location = response.headers.get("location");
  if (location !== null) say(`HTTP ${response.status}: it points to ${location}, which is not followed.`);
  else if (!options.include) say(`HTTP ${response.status}`);
  process.exitCode = CODES[response.status] ?? 1;
}

/** JSON with indents; any other text unchanged. */
function indented(text: string, type: string): string {
  try {
    return /json/.test(type) ? JSON.stringify(JSON.parse(text), null, 2) : text;
  } catch {
    return text;
  }
}

const CODES: Record<number, number> = {
  400: 2,
  401: NOT_ALLOWED,
  403: NOT_ALLOWED,
  404: NOT_FOUND,
  413: LIMITED,
  429: LIMITED,
  503: LIMITED,
};
