import type { Subscribe, Unsubscribe } from "#generated/push-types.ts";
import { socketCalls } from "#generated/validators/socket-calls.js";
import { GatewayError } from "#kit/errors.ts";
import { isNarrowed, requireAllAgents } from "#kit/reach.ts";
import type { MethodCall } from "#wire/rpc/rpc.ts";
import { mayCall, type RpcMethodRow, type RpcMethods } from "#wire/rpc/rpc.ts";
import { paramFault } from "#wire/rpc/rpc-methods.ts";
import { CLOSE, type Connection, type SocketExchange } from "./connection.ts";

/** The permissions for pushes about sessions and agents, and about the gateway. */
const SESSION_PERMISSION = "session.get";
const GATEWAY_PERMISSION = "system.health";
/** The recorder requires all permissions, as REST requires the scope `admin`. */
const DELIVERIES_PERMISSION = "*";

/** The methods that are available only over a WebSocket. */
const socketRows: readonly RpcMethodRow[] = [
  row("rpc.subscribe", async (params: Subscribe, { connection }) => {
    // Not the caller at the beginning of the call: a reload may have changed its rights.
    const { caller } = connection;
    if (params.sessions || params.agents) require(caller, SESSION_PERMISSION);
    if (params.gateway !== undefined) require(caller, GATEWAY_PERMISSION);
    if (params.deliveries) require(caller, DELIVERIES_PERMISSION);
    if (params.gateway !== undefined || params.deliveries) requireAllAgents(caller, "the gateway's stream");
    const places = await connection.subscriptions.subscribe(params);
    // The token may have lost a permission meanwhile.
    checkPermissions(connection);
    return places;
  }),
  row("rpc.unsubscribe", async (params: Unsubscribe, { connection }) => {
    await connection.subscriber?.unsubscribe(params);
    return {};
  }),
];

export function withSocketCalls(methods: RpcMethods): RpcMethods {
  return new Map([...methods, ...socketRows.map((one) => [one.name, one] as const)]);
}

/** Gives a connection the rights that its token has now. Closes a connection with subscriptions if its token has lost an agent. */
export function setCaller(connection: Connection, caller: Connection["caller"]): void {
  const isLess = connection.subscriber !== undefined && isNarrowed(connection.caller, caller);
  connection.caller = caller;
  if (isLess) connection.close(CLOSE.permissionRevoked, "the token has lost access to an agent");
  else checkPermissions(connection);
}

/** Closes a connection whose caller may not have its subscriptions. */
function checkPermissions(connection: Connection): void {
  const { subscriber, caller } = connection;
  const needed = [
    subscriber?.hasSessions && SESSION_PERMISSION,
    subscriber?.deliveries && DELIVERIES_PERMISSION,
    subscriber?.gateway && GATEWAY_PERMISSION,
  ];
  const lost = needed.find((permission) => permission && !mayCall(caller, permission));
  if (lost) connection.close(CLOSE.permissionRevoked, `the token no longer has the permission ${lost}`);
}

function row<Params>(
  name: "rpc.subscribe" | "rpc.unsubscribe",
  run: (params: Params, exchange: SocketExchange) => unknown,
): RpcMethodRow {
  const validate = socketCalls[name];
  return {
    name,
    // The required permission depends on the request.
    permission: null,
    required: [],
    check: (given) => (validate(given) ? undefined : paramFault(name, validate)),
    run: (params, call: MethodCall) => run(params, call.exchange as SocketExchange),
  };
}

function require(caller: SocketExchange["caller"], permission: string): void {
  if (!mayCall(caller, permission))
    throw new GatewayError(
      "forbidden",
      `The token \`${caller.name}\` may not subscribe to this: it lacks the permission ${permission === "*" ? "`*` (all permissions)" : permission}.`,
    );
}
