import type { Bundle } from "../generate/bundle.ts";
import { type Json, type JsonObject, list, object, text, texts } from "../generate/json.ts";
import { readTools, type Tool } from "../generate/mcp.ts";
import { type Change, compareSchemas, type Direction, type Side } from "./schemas.ts";

/** The documents of a contract: OpenAPI, OpenRPC, AsyncAPI. Each has its shapes as components. */
export type Contract = { openapi: JsonObject; openrpc: JsonObject; pushes: JsonObject };

/** All differences between two contracts, with the breaking ones first. */
export function compareContracts(before: Contract, after: Contract): Change[] {
  const changes = [
    ...comparePaths(before.openapi, after.openapi),
    ...compareSent(before.openapi, after.openapi),
    ...compareMethods(before.openrpc, after.openrpc),
    ...comparePushes(before.pushes, after.pushes),
    ...compareTools(before, after),
  ];
  return changes.sort((one, other) => Number(other.breaks) - Number(one.breaks));
}

function shapesOf(document: JsonObject): JsonObject {
  return object(object(document.components).schemas);
}

function resolve(node: Json | undefined, document: JsonObject): JsonObject {
  const [, home = "", name = ""] = /^#\/components\/(\w+)\/(.+)$/.exec(text(object(node).$ref)) ?? [];
  return home === "" ? object(node) : resolve(object(object(document.components)[home])[name], document);
}

type Reporter = { changes: Change[]; report: (breaks: boolean, where: string, what: string) => void };
function reporter(who: string): Reporter {
  const changes: Change[] = [];
  return { changes, report: (breaks, where, what) => changes.push({ breaks, who, where, what }) };
}

/** The operations of a document by their place, with the parameters of their path. */
function operationsOf(document: JsonObject): Map<string, JsonObject> {
  return new Map(
    Object.entries(object(document.paths)).flatMap(([path, item]) =>
      Object.entries(object(item)).flatMap(([method, operation]): [string, JsonObject][] =>
        object(operation).responses === undefined
          ? []
          : [
              [
                `${method.toUpperCase()} ${path}`,
                {
                  ...object(operation),
                  parameters: [...list(object(item).parameters), ...list(object(operation).parameters)],
                },
              ],
            ],
      ),
    ),
  );
}

function comparePaths(before: JsonObject, after: JsonObject): Change[] {
  const now = operationsOf(after);
  const was = operationsOf(before);
  const changes = [...was].flatMap(([place, operation]) => {
    const id = text(operation.operationId);
    const { changes, report } = reporter(`Clients that call ${place} (${id}; SDKs: gateway.${id})`);
    const other = now.get(place);
    if (other === undefined) report(true, "", "the operation was removed");
    else {
      compareParameters([operation, before], [other, after], report);
      compareBodies([operation, before], [other, after], report);
      compareReplies([operation, before], [other, after], report);
      compareErrors(operation, other, report);
      if (text(other.operationId) !== id)
        report(true, "", `it is called ${text(other.operationId)} now, so the SDKs' call has another name`);
    }
    return changes;
  });
  for (const place of now.keys())
    if (!was.has(place)) changes.push({ breaks: false, who: place, where: "", what: "the operation is new" });
  return changes;
}

type Sided = [operation: JsonObject, document: JsonObject];
type ReportChange = Reporter["report"];

function compareShapes(
  before: [Json | undefined, JsonObject],
  after: [Json | undefined, JsonObject],
  direction: Direction,
  where: string,
  report: ReportChange,
) {
  return compareSchemas(
    { schema: before[0], shapes: shapesOf(before[1]) },
    { schema: after[0], shapes: shapesOf(after[1]) },
    direction,
    where,
    report,
  );
}

function compareParameters(before: Sided, after: Sided, report: ReportChange): void {
  const parametersOf = ([operation, document]: Sided) =>
    new Map(
      list(operation.parameters).map((node) => {
        const parameter = resolve(node, document);
        return [`the ${text(parameter.in)} parameter ${text(parameter.name)}`, parameter] as const;
      }),
    );
  const [was, is] = [parametersOf(before), parametersOf(after)];
  for (const [where, parameter] of was) {
    const other = is.get(where);
    if (other === undefined) report(true, where, "it is refused now");
    else {
      if (parameter.required !== true && other.required === true) report(true, where, "it must be sent now");
      compareShapes([parameter.schema, before[1]], [other.schema, after[1]], "request", where, report);
    }
  }
  for (const [where, parameter] of is)
    if (!was.has(where))
      report(
        parameter.required === true,
        where,
        parameter.required === true ? "it is new and must be sent" : "it is new",
      );
}

function compareBodies(before: Sided, after: Sided, report: ReportChange): void {
  const [was, is] = [resolve(before[0].requestBody, before[1]), resolve(after[0].requestBody, after[1])];
  if (was.required !== true && is.required === true) report(true, "the request", "a body must be sent now");
  for (const [type, media] of Object.entries(object(was.content))) {
    const other = object(is.content)[type];
    if (other === undefined) report(true, "the request", `a body of the type ${type} is no longer accepted`);
    else
      compareShapes(
        [object(media).schema, before[1]],
        [object(other).schema, after[1]],
        "request",
        "the request",
        report,
      );
  }
}

function compareReplies(before: Sided, after: Sided, report: ReportChange): void {
  const [was, is] = [object(before[0].responses), object(after[0].responses)];
  for (const [status, response] of Object.entries(was)) {
    const where = `the reply ${status}`;
    if (is[status] === undefined) {
      report(Number(status) < 300, where, "it is no longer returned");
      continue;
    }
    const content = object(resolve(is[status], after[1]).content);
    for (const [type, media] of Object.entries(object(resolve(response, before[1]).content))) {
      if (content[type] === undefined) report(true, where, `it no longer has a body of the type ${type}`);
      else
        compareShapes(
          [object(media).schema, before[1]],
          [object(content[type]).schema, after[1]],
          "reply",
          where,
          report,
        );
    }
  }
  for (const status of Object.keys(is))
    if (was[status] === undefined) report(false, `the reply ${status}`, "it is new");
  const [streamed, streams] = [text(before[0]["x-stream"]), text(after[0]["x-stream"])];
  if (streamed !== "" && streams !== "")
    compareShapes(
      [shapesOf(before[1])[streamed], before[1]],
      [shapesOf(after[1])[streams], after[1]],
      "reply",
      "an event of the stream",
      report,
    );
}

function compareErrors(before: JsonObject, after: JsonObject, report: ReportChange): void {
  const [was, is] = [texts(before["x-errors"]), texts(after["x-errors"])];
  for (const name of was) if (!is.includes(name)) report(false, "its errors", `${name} is no longer returned`);
  for (const name of is) if (!was.includes(name)) report(false, "its errors", `${name} is new`);
}

/** The bodies that the gateway sends to others. */
function compareSent(before: JsonObject, after: JsonObject): Change[] {
  const bodiesOf = (document: JsonObject): [string, Json | undefined][] =>
    Object.entries(object(document.webhooks)).map(([name, item]) => {
      const [media] = Object.values(object(resolve(object(object(item).post).requestBody, document).content));
      return [name, object(media).schema];
    });
  const now = new Map(bodiesOf(after));
  const was = new Map(bodiesOf(before));
  const changes = [...was].flatMap(([name, schema]) => {
    const { changes, report } = reporter(`Receivers of ${name}`);
    if (!now.has(name)) report(true, "", "it is no longer sent");
    else compareShapes([schema, before], [now.get(name), after], "reply", "the body", report);
    return changes;
  });
  for (const name of now.keys())
    if (!was.has(name)) changes.push({ breaks: false, who: `Receivers of ${name}`, where: "", what: "it is new" });
  return changes;
}

function compareMethods(before: JsonObject, after: JsonObject): Change[] {
  const methodsOf = (document: JsonObject) =>
    new Map(list(document.methods).map((node) => [text(object(node).name), object(node)] as const));
  const [was, is] = [methodsOf(before), methodsOf(after)];
  const changes = [...was].flatMap(([name, method]) => {
    const { changes, report } = reporter(`Clients that call ${name} (SDKs: gateway.rpc.${name})`);
    const other = is.get(name);
    if (other === undefined) report(true, "", "the method was removed");
    else {
      compareParams([method, before], [other, after], report);
      compareShapes(
        [resolve(method.result, before).schema, before],
        [resolve(other.result, after).schema, after],
        "reply",
        "the result",
        report,
      );
      compareErrors(method, other, report);
    }
    return changes;
  });
  for (const name of is.keys())
    if (!was.has(name)) changes.push({ breaks: false, who: name, where: "", what: "the method is new" });
  return changes;
}

function compareParams(before: Sided, after: Sided, report: ReportChange): void {
  const paramsOf = ([method, document]: Sided) =>
    new Map(
      list(method.params).map((node) => {
        const param = resolve(node, document);
        return [`the param ${text(param.name)}`, param] as const;
      }),
    );
  const [was, is] = [paramsOf(before), paramsOf(after)];
  for (const [where, param] of was) {
    const other = is.get(where);
    if (other === undefined) report(true, where, "it is refused now");
    else {
      if (param.required !== true && other.required === true) report(true, where, "it must be sent now");
      compareShapes([param.schema, before[1]], [other.schema, after[1]], "request", where, report);
    }
  }
  for (const [where, param] of is)
    if (!was.has(where))
      report(param.required === true, where, param.required === true ? "it is new and must be sent" : "it is new");
}

/** Pushes, and the two calls of the WebSocket: `rpc.subscribe` is sent, `rpc.subscribe.result` is read. */
function comparePushes(before: JsonObject, after: JsonObject): Change[] {
  const messagesOf = (document: JsonObject) =>
    new Map(
      Object.values(object(document.channels)).flatMap((channel) =>
        Object.entries(object(object(channel).messages)).map(
          ([name, message]) => [name, resolve(message, document)] as const,
        ),
      ),
    );
  const [was, is] = [messagesOf(before), messagesOf(after)];
  const changes = [...was].flatMap(([name, message]) => {
    const isCall = name.startsWith("rpc.") && !name.endsWith(".result");
    const { changes, report } = reporter(
      isCall ? `Clients that call ${name} over the WebSocket` : `Readers of the push ${name}`,
    );
    const other = is.get(name);
    if (other === undefined) report(true, "", "it was removed");
    else
      compareShapes(
        [message.payload, before],
        [other.payload, after],
        isCall ? "request" : "reply",
        "its params",
        report,
      );
    return changes;
  });
  for (const name of is.keys())
    if (!was.has(name)) changes.push({ breaks: false, who: `Readers of pushes`, where: name, what: "the push is new" });
  return changes;
}

/** The tools of the MCP door. The documents name them in `x-mcp`. */
function compareTools(before: Contract, after: Contract): Change[] {
  const bundleOf = (document: JsonObject) => ({ document, components: document.components as Bundle["components"] });
  const toolsOf = ({ openapi, openrpc }: Contract) =>
    new Map(readTools(bundleOf(openapi), bundleOf(openrpc)).map((tool) => [tool.name, tool]));
  const [was, is] = [toolsOf(before), toolsOf(after)];
  const changes = [...was].flatMap(([name, tool]) => {
    const { changes, report } = reporter(`MCP clients that call ${name}`);
    const other = is.get(name);
    if (other === undefined) report(true, "", "the tool was removed");
    else compareTool(tool, other, report);
    return changes;
  });
  for (const name of is.keys())
    if (!was.has(name)) changes.push({ breaks: false, who: `MCP clients`, where: name, what: "the tool is new" });
  return changes;
}

function compareTool(before: Tool, after: Tool, report: ReportChange): void {
  const sides = (part: "input" | "output"): [Side, Side] => [
    { schema: before[part], shapes: before.shapes },
    { schema: after[part], shapes: after.shapes },
  ];
  compareSchemas(...sides("input"), "request", "its arguments", report);
  compareSchemas(...sides("output"), "reply", "its result", report);
  if (before.scope !== after.scope) report(after.scope === "admin", "", `its scope is ${after.scope} now`);
  // With `operator: read`, only tools that read are offered.
  if (before.hint !== after.hint) report(before.hint === "read", "", `its hint is ${after.hint} now`);
}
