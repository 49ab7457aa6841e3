import type { Bundle } from "../../generate/bundle.ts";
import { type Json, type JsonObject, list, object, text, texts } from "../../generate/json.ts";
import type { Push } from "../../generate/push-types.ts";
import type { Call, SdkDescription } from "../../generate/sdk/description.ts";
import { contentOf, type Field, fieldList, type Shapes } from "./fields.ts";
import type { Entry, Group } from "./groups.ts";
import { rpcTabs } from "./samples.ts";
import { block, code, paragraphs, pretty } from "./words.ts";

/** The methods of openrpc.json, grouped by noun. */
export function rpcGroups({ document, components }: Bundle, sdk: SdkDescription): Group[] {
  const all: Shapes = { prefix: "rpc", shapes: components.schemas ?? {} };
  const groups = new Map<string, Entry[]>();
  for (const node of list(document.methods).map(object)) {
    const noun = text(node.name).split(".")[0] as string;
    const call = sdk.rpc.calls.find(({ contract }) => contract === node.name) as Call;
    groups.set(noun, [...(groups.get(noun) ?? []), methodOf(node, all, call, sdk)]);
  }
  return [...groups].map(([name, entries]) => ({ name, title: name, intro: "", entries }));
}

function methodOf(method: JsonObject, all: Shapes, call: Call, sdk: SdkDescription): Entry {
  const name = text(method.name);
  const { schema, description } = object(method.result);
  const fields = list(method.params).map((node): Field => {
    const { name, required, schema, description } = object(node);
    return { name: text(name), required: required === true, schema: object(schema), description: text(description) };
  });
  return {
    id: name,
    title: name,
    summary: text(method.summary),
    content: paragraphs(
      text(method.description),
      ...(fields.length === 0 ? [] : ["#### Params", fieldList(fields, all, true)]),
      "#### Result",
      text(description),
      contentOf(object(schema), all),
    ),
    samples: list(method.examples).map((node) => exampleOf(object(node), call, sdk)),
    errors: texts(method["x-errors"]),
  };
}

function exampleOf({ description, params, result }: JsonObject, call: Call, sdk: SdkDescription): string {
  const given = Object.fromEntries(list(params).map((one) => [text(object(one).name), object(one).value as Json]));
  const answer = { jsonrpc: "2.0", result: object(result).value, id: "1" };
  return paragraphs(text(description), rpcTabs(call, given, sdk), "Answer", block("json", pretty(answer)));
}

/** The pushes of the WebSocket, and the calls that only it accepts. */
export function pushGroups({ document, components }: Bundle, pushes: readonly Push[], calls: readonly Push[]): Group[] {
  const all: Shapes = { prefix: "push", shapes: components.schemas ?? {} };
  const messages = Object.values(object(document.channels)).map((channel) => object(object(channel).messages));
  const examplesOf = (name: string): Json[] =>
    messages.flatMap((named) => list(object(named[name]).examples)).map((one) => object(one).payload as Json);
  const entryOf = ({ name, summary, payload }: Push, show: (value: Json) => object): Entry => ({
    id: name,
    title: name,
    summary: "",
    content: paragraphs(summary, contentOf(payload, all)),
    samples: examplesOf(name).map((example) => block("json", pretty(show(example)))),
    errors: [],
  });
  return [
    {
      name: "calls",
      title: "Calls only on the WebSocket",
      intro: `The socket also accepts all [methods](rpc.html). ${code("….result")} is the result of a call.`,
      entries: calls.map((call) => {
        const isResult = call.name.endsWith(".result");
        const method = call.name.replace(/\.result$/, "");
        const show = (payload: Json) =>
          isResult ? { jsonrpc: "2.0", id: 1, result: payload } : { jsonrpc: "2.0", id: 1, method, params: payload };
        return entryOf(call, show);
      }),
    },
    {
      name: "pushes",
      title: "Pushes",
      intro: "",
      entries: pushes.map((push) => entryOf(push, (params) => ({ jsonrpc: "2.0", method: push.name, params }))),
    },
  ];
}
