import type { Command } from "commander";
import type { Gateway } from "#generated/clients/typescript/src/index.ts";
import type { RpcSocket } from "#generated/clients/typescript/src/rpc.ts";
import { type Address, type AddressOptions, findAddress } from "./address.ts";
import { type Credential, fetchFor } from "./credentials.ts";
import { CliError, INTERRUPTED, NOT_ALLOWED, notAReply, UsageError } from "./failures.ts";
import { type OutputOptions, oneLine } from "./output.ts";

export type CallOptions = AddressOptions & OutputOptions;

export type Calling<Options> = {
  gateway: Gateway;
  /** Where it was found, with its tokens. */
  address: Address;
  /** A separate WebSocket, for pushes. */
  connect: () => Promise<RpcSocket>;
  options: Options & CallOptions;
  /** True if the last response was marked as that of a repeated request. */
  isRepeat: () => boolean;
  /** Aborts at Ctrl-C. */
  signal: AbortSignal;
};

/**
 * Makes a command of one that calls a gateway: it gets the options that find it, and its action a client. Ctrl-C ends the action's calls and
 * the process with 130, without a word.
 */
export function calling<Options extends object, Args extends unknown[] = string[]>(
  command: Command,
  act: (calling: Calling<Options>, ...args: Args) => Promise<void>,
): Command {
  return command
    .option("--json", "print JSON")
    .option("-q, --quiet", "print only ids")
    .optionsGroup("Which gateway:")
    .option("--url <url>", "its address")
    .option("--key <key>", "a REST key, or the console token")
    .option("--rpc-token <token>", "an RPC token")
    .option("--webhook-token <token>", "the webhook token")
    .option("--config <file>", "the configuration that names them")
    .action(async (...given: unknown[]) => {
      // Commander gives the arguments, the options and the command.
      const args = given.slice(0, -2) as Args;
      const options = given.at(-2) as Options & CallOptions;
      const stop = new AbortController();
      process.once("SIGINT", () => {
        stop.abort();
        // What does not end by the signal ends all the same.
        setTimeout(() => process.exit(INTERRUPTED), 500).unref();
      });
      const address = await findAddress(options, process.env);
      const { Gateway } = await import("#generated/clients/typescript/src/index.ts");
      // Node 20 has no WebSocket.
      const { url, key, rpcToken, webhookToken, webhookPath } = address;
      const clientOptions = { url, key, rpcToken, webhookToken, webhookPath, anonymous: true };
      let answered = false;
      let repeated = false;
      const connect = async () => {
        answered = true;
        const { WebSocket } = await import("ws");
        return new Gateway({ ...clientOptions, WebSocket }).rpc.connect();
      };
      const refused = (credential: Credential): void => {
        address.refused = credential;
      };
      const send = fetchFor(address, refused);
      const gateway = new Gateway({
        ...clientOptions,
        async fetch(input, init) {
          const response = await send(input, init);
          answered = true;
          repeated = response.headers.has("idempotent-replayed");
          return response;
        },
      });
      try {
        await act({ gateway, address, connect, options, isRepeat: () => repeated, signal: stop.signal }, ...args);
      } catch (error) {
        if (!stop.signal.aborted) throw failureOf(error, address, answered);
      }
      if (stop.signal.aborted) process.exitCode = INTERRUPTED;
    });
}

/** A TypeError after an answer is caused by a missing or mistyped field of the answer; a TypeError before it, by an argument. */
export function failureOf(error: unknown, address: Address, answered: boolean): unknown {
  if (!(error instanceof TypeError || error instanceof RangeError)) return reasonOf(error, address);
  return answered ? notAReply(address.url, error) : new UsageError(error.message);
}

/** Explains a missing token if the configuration has an unused one, and names a token that the gateway does not accept. */
export function reasonOf(error: unknown, { unused, refused, url }: Address): unknown {
  const { name, detail, requestId } = error as { name?: string; detail?: string; requestId?: string };
  if (name === "unauthenticated" && refused)
    return new CliError(
      `The gateway at ${url} does not accept ${refused.name}. (${oneLine([name, ...(requestId ? [requestId] : [])].join(", "))})`,
      NOT_ALLOWED,
      "agent-gateway doctor",
    );
  if (name !== "no-token") return error;
  const option = (["rpcToken", "webhookToken"] as const).find((option) => detail?.includes(`\`${option}\``)) ?? "key";
  return unused[option] ?? error;
}
