import { type Command, Option } from "commander";
import { nearest } from "#kit/nearest.ts";
import { calling } from "../calling.ts";
import { UsageError } from "../failures.ts";
import { print, say } from "../terminal.ts";
import { fieldsOf, jsonOf, textOf } from "../values.ts";

const VERBS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

export function addCalls(program: Command): void {
  calling<{ params?: string }, [string, string[]]>(
    program
      .command("call")
      .summary("call an RPC method, and print its result")
      .argument("<method>", "such as agent.list")
      .argument(
        "[params...]",
        "name=value; name:=JSON where a string is also allowed; name=@FILE for the text of a file",
      )
      .option("--params <json>", "the params as JSON; @FILE for a file, - for standard input")
      .addHelpText(
        "after",
        "\nagent-gateway openrpc prints all methods.\n\nExamples:\n  agent-gateway call agent.list\n  agent-gateway call agent.sendMessage agentName=main message='Good morning' wait=true",
      ),
    async ({ gateway, options, signal }, method, pairs) => {
      const { methods } = await import("#generated/methods.ts");
      if (method === "rpc.subscribe" || method === "rpc.unsubscribe")
        throw new UsageError(
          `${method} works only over the WebSocket at /rpc/ws.`,
          "agent-gateway events tail, or agent-gateway deliveries tail",
        );
      const row = Object.hasOwn(methods, method) ? methods[method as keyof typeof methods] : undefined;
      if (row === undefined)
        throw unknown(`There is no method ${method}.`, method, Object.keys(methods), "agent-gateway openrpc");
      const given =
        options.params === undefined ? {} : (jsonOf(textOf(options.params), "--params") as Record<string, unknown>);
      const params = { ...given, ...fieldsOf(pairs, (name) => !LOOSE.includes(name)) };
      for (const name of Object.keys(params))
        if (!(row.params as readonly string[]).includes(name))
          throw unknown(
            `${method} has no param ${name}.`,
            name,
            row.params,
            row.params.length === 0 ? "leave it out" : `its params are ${row.params.join(", ")}`,
          );
      const [noun = "", verb = ""] = method.split(".");
      const nouns = gateway.rpc as unknown as Record<
        string,
        Record<string, (params: object, options: object) => Promise<unknown>>
      >;
      print(JSON.stringify(await nouns[noun]?.[verb]?.(params, { signal }), null, 2));
    },
  );

  calling<{ data?: string; header: string[]; include?: boolean }, [string, string, string[]]>(
    program
      .command("api")
      .summary("send a request to any path")
      .argument("<verb>", "GET, POST, …")
      .argument("<path>", "such as /api/v1/turns")
      .argument("[fields...]", "fields of a JSON body: name=value, name:=JSON, name=@FILE")
      .option("--data <json>", "the body; @FILE for a file, - for standard input")
      .addOption(new Option("-H, --header <name: value...>", "more headers").default([], "none"))
      .option("-i, --include", "also print the status and the headers")
      .addHelpText(
        "after",
        "\nThe path determines the token: the webhook token for webhooks, the RPC token for /metrics and /rpc, else the REST key.\n\nExamples:\n  agent-gateway api GET '/api/v1/turns?status=failed'\n  agent-gateway api POST /api/v1/chat/send message='Good morning'\n  agent-gateway api POST /hooks/github --data @push.json -H 'x-github-event: push'",
      ),
    async (given, verb, path, pairs) => {
      const { sendRaw } = await import("../raw-request.ts");
      const method = verb.toUpperCase();
      if (!VERBS.includes(method))
        throw new UsageError(`${verb} is not an HTTP method. Use one of: ${VERBS.join(", ")}.`);
      if (!path.startsWith("/"))
        throw new UsageError(`${path} is not a path. It begins with a slash, such as /api/v1/turns.`);
      const { data, header } = given.options;
      if (data !== undefined && pairs.length > 0)
        throw new UsageError("Give the body by --data or by fields, not both.");
      const body = data !== undefined ? textOf(data) : pairs.length > 0 ? JSON.stringify(fieldsOf(pairs)) : undefined;
      await sendRaw(given, { method, path, body, headers: header });
    },
  );

  for (const [name, what] of [
    ["openapi", "REST and webhooks"],
    ["openrpc", "the RPC methods"],
  ] as const)
    calling<{ offline?: boolean }>(
      program
        .command(name)
        .summary(`print the contract of ${what}`)
        .option("--offline", "the contract of this version, without a gateway")
        .addHelpText("after", `\nExample:\n  agent-gateway ${name} > ${name}.json`),
      async ({ gateway, options, signal }) => {
        const { documents } = options.offline ? await import("../documents.ts") : { documents: undefined };
        print(JSON.stringify(documents ? documents[name] : await gateway.ops[name]({ signal }), null, 2));
        if (documents) say(`The contract of this version; a gateway shows its own at /${name}.json.`);
      },
    );
}

/** The params that are not text. */
const LOOSE = ["limit", "keep", "wait", "stream", "hops", "includeCompacted"];

function unknown(sentence: string, given: string, names: readonly string[], next: string): UsageError {
  const near = nearest(given, names);
  return new UsageError(near ? `${sentence} Did you mean ${near}?` : sentence, next);
}
