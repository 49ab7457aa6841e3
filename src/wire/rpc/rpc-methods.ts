import type { CallContext } from "#core/call.ts";
import { methods } from "#generated/methods.ts";
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import type { RpcMethod } from "#generated/rpc-types.ts";
import { params } from "#generated/validators/rpc.js";
import type { Validate, ValidationError } from "#generated/validators/validate.ts";
import { demandOf, hintOf } from "#kit/fault-words.ts";
import { shortened } from "./envelope.ts";
import type { MethodCall, RpcMethodRow, RpcMethods } from "./rpc.ts";

/** The methods that start or change something; the others only read. */
const CHANGING = new Set<string>([
  "agent.reload",
  "agent.sendMessage",
  "session.compact",
  "session.delete",
  "system.reload",
] satisfies RpcMethod[]);

/** The methods of the contract with their bodies, and `rpc.discover`, as every transport serves them. */
export const createRpcMethods = (
  handlers: RpcHandlers<CallContext>,
  discover: (call: MethodCall) => unknown,
): RpcMethods => {
  const rows = new Map<string, RpcMethodRow>();
  for (const [name, { permission, required, idempotent }] of Object.entries(methods)) {
    const validate = params[name as RpcMethod];
    rows.set(name, {
      name,
      permission,
      required,
      idempotent,
      changes: CHANGING.has(name),
      check: (given) => (validate(given) ? undefined : paramFault(name, validate)),
      run: handlers[name as RpcMethod] as RpcMethodRow["run"],
    });
  }
  rows.set("rpc.discover", {
    name: "rpc.discover",
    permission: null,
    required: [],
    check: (given) => {
      const [unknown] = Object.keys(given);
      return unknown === undefined ? undefined : `\`${shortened(unknown)}\` is no param of rpc.discover.`;
    },
    run: (_params, call) => discover(call),
  });
  return rows;
};

/** The fault that the last call of the validator found in the params, as a sentence. */
export const paramFault = (method: string, { errors }: Validate): string => {
  const [fault] = errors ?? [];
  if (fault === undefined) return "The params are not what the method takes.";
  const place = fault.instancePath.slice(1).replaceAll("/", ".");
  if (fault.keyword === "additionalProperties") return unknownParam(method, place, fault);
  const subject = place === "" ? "The params object" : `\`${shortened(place)}\``;
  return `${subject} must ${demandOfParam(fault)}.`;
};

const unknownParam = (method: string, place: string, { params }: ValidationError): string => {
  const name = String(params.additionalProperty);
  const path = shortened(place === "" ? name : `${place}.${name}`);
  return `\`${path}\` is no param of ${method}${hintOf(name, (params.known as string[]) ?? [])}.`;
};

const demandOfParam = (fault: ValidationError): string =>
  demandOf(fault) ?? fault.message?.replace(/^must /, "") ?? "be what rpc.discover shows";
