import type { CallContext } from "#core/call.ts";
import { methods } from "#generated/methods.ts";
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import type { RpcMethod } from "#generated/rpc-types.ts";
import { params } from "#generated/validators/rpc.js";
import type { Validate } from "#generated/validators/validate.ts";
import { faultOf } from "#wire/call/body-fault.ts";
import { shortened } from "./envelope.ts";
import type { MethodCall, RpcMethodRow, RpcMethods } from "./rpc.ts";

/** The methods that start or change something; the others only read. */
const CHANGING = new Set<string>([
  "agent.reload",
  "agent.sendMessage",
  "schedule.pause",
  "schedule.resume",
  "schedule.run",
  "session.compact",
  "session.delete",
  "system.reload",
] satisfies RpcMethod[]);

/** The methods of the contract with their bodies, and `rpc.discover`, as every transport serves them. */
export function createRpcMethods(
  handlers: RpcHandlers<CallContext>,
  discover: (call: MethodCall) => unknown,
): RpcMethods {
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
      return unknown === undefined ? undefined : `\`${shortened(unknown)}\` is not a param of rpc.discover.`;
    },
    run: (_params, call) => discover(call),
  });
  return rows;
}

/** The fault that the last call of the validator found in the params, as a sentence. */
export function paramFault(method: string, { errors }: Validate): string {
  const { pointer, message } = faultOf(errors?.[0]);
  const place = shortened(pointer.slice(1).replaceAll("/", "."));
  const subject = place === "" ? "The params object" : `\`${place}\``;
  return `${subject} ${message.replace(/^is unknown/, `is not a param of ${method}`)}.`;
}
