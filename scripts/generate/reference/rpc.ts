import type { Bundle } from "../bundle.ts";
import { type Json, type JsonObject, list, object, text, texts } from "../json.ts";
import type { Push } from "../push-types.ts";
import type { Entry, Group } from "./page.ts";
import { contentOf, type Field, fieldList, type Shapes } from "./shapes.ts";
import { code, inline, pretty, prose, sample } from "./words.ts";

/** The methods of openrpc.json. */
export const rpcGroup = ({ document, components }: Bundle): Group => {
  const all: Shapes = { prefix: "rpc", shapes: components.schemas ?? {} };
  return {
    title: "RPC",
    intro: prose(text(object(document.info).description)),
    entries: list(document.methods).map((node) => methodOf(object(node), all)),
  };
};

const methodOf = (method: JsonObject, all: Shapes): Entry => {
  const name = text(method.name);
  const { schema, description } = object(method.result);
  const fields = list(method.params).map((node): Field => {
    const { name, required, schema, description } = object(node);
    return { name: text(name), required: required === true, schema: object(schema), description: text(description) };
  });
  return {
    id: name,
    title: name,
    heading: code(name),
    summary: text(method.summary),
    content: [
      prose(text(method.description)),
      ...(fields.length === 0 ? [] : ["<h4>Params</h4>", fieldList(fields, all, true)]),
      "<h4>Result</h4>",
      `<p>${inline(text(description))}</p>`,
      contentOf(object(schema), all),
      ...list(method.examples).map((node) => exampleOf(name, object(node))),
    ].join("\n"),
    errors: texts(method["x-errors"]),
  };
};

const exampleOf = (method: string, { description, params, result }: JsonObject): string => {
  const given = Object.fromEntries(list(params).map((one) => [text(object(one).name), object(one).value]));
  const call = { jsonrpc: "2.0", id: 1, method, ...(Object.keys(given).length > 0 && { params: given }) };
  const answer = { jsonrpc: "2.0", id: 1, result: object(result).value };
  return sample(text(description), `${pretty(call)}\n\n${pretty(answer)}`);
};

/** The pushes of the WebSocket, and the calls that it alone takes. */
export const pushGroup = ({ document, components }: Bundle, pushes: readonly Push[], calls: readonly Push[]): Group => {
  const all: Shapes = { prefix: "push", shapes: components.schemas ?? {} };
  const messages = Object.values(object(document.channels)).map((channel) => object(object(channel).messages));
  const examplesOf = (name: string): Json[] =>
    messages.flatMap((named) => list(object(named[name]).examples)).map((one) => object(one).payload as Json);
  const entryOf = ({ name, summary, payload }: Push, show: (value: Json) => object): Entry => ({
    id: `push-${name}`,
    title: name,
    heading: code(name),
    summary: "",
    content: [
      prose(summary),
      contentOf(payload, all),
      ...examplesOf(name).map((payload) => sample("", pretty(show(payload)))),
    ].join("\n"),
    errors: [],
  });
  return {
    title: "WebSocket",
    intro: prose(text(object(document.info).description)),
    entries: [
      ...calls.map((call) => {
        const isResult = call.name.endsWith(".result");
        const method = call.name.replace(/\.result$/, "");
        const show = (payload: Json) =>
          isResult ? { jsonrpc: "2.0", id: 1, result: payload } : { jsonrpc: "2.0", id: 1, method, params: payload };
        return entryOf(call, show);
      }),
      ...pushes.map((push) => entryOf(push, (params) => ({ jsonrpc: "2.0", method: push.name, params }))),
    ],
  };
};
