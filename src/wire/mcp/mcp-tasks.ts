import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  MissingRequiredClientCapabilityError,
  type Server,
  type ServerContext,
  type StandardSchemaV1,
} from "@modelcontextprotocol/server";
import type { McpTask } from "#core/mcp-tools.ts";
import { GatewayError } from "#kit/errors.ts";
import type { McpRequest, ToolParts } from "./mcp-request.ts";
import { guarded, resultOf } from "./mcp-results.ts";

/** The extension by which the answer of a call may be a task. A task is a turn, and its id is the turn's. */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";
const POLL_EVERY_MS = 2_000;

/** True if the client of a call supports tasks. Each message declares it again. */
export function declaresTasks({ mcpReq }: ServerContext): boolean {
  const envelope = mcpReq.envelope as Record<string, { extensions?: Record<string, unknown> } | undefined> | undefined;
  return envelope?.[CLIENT_CAPABILITIES_META_KEY]?.extensions?.[TASKS_EXTENSION] !== undefined;
}

type Listening = { params?: { notifications?: { taskIds?: unknown }; _meta?: Record<string, Declared | undefined> } };
type Declared = { extensions?: Record<string, unknown> };

/** The refusal of a client that subscribes to tasks without declaring the extension. Declared clients get no notifications of tasks either: they poll. */
export function listeningFault(message: object): MissingRequiredClientCapabilityError | undefined {
  const { notifications, _meta } = (message as Listening).params ?? {};
  const declared = _meta?.[CLIENT_CAPABILITIES_META_KEY]?.extensions?.[TASKS_EXTENSION];
  return notifications?.taskIds !== undefined && declared === undefined ? undeclared() : undefined;
}

/** The answer of a call whose turn goes on. The protocol's schema of a call's result wants `content`. */
export function taskResultOf(task: McpTask, parts: ToolParts): CallToolResult {
  return { ...stateOf(task, parts), resultType: "task", content: [] };
}

/** Reads and cancels tasks. The gateway asks nothing during a turn, so there is nothing to update. */
export function serveTasks(server: Server, parts: ToolParts, request: McpRequest): void {
  const { tools } = parts;
  const handle = (method: string, run: (taskId: string) => Promise<object>) =>
    server.setRequestHandler(method, { params: TASK_PARAMS }, async ({ taskId }, ctx) => {
      if (!declaresTasks(ctx)) throw undeclared();
      return await guarded(request, async () => (await run(taskId).catch(refuseUnknown)) as Record<string, unknown>);
    });
  handle("tasks/get", async (taskId) => {
    const task = await tools.task(taskId, request.caller);
    return { ...stateOf(task, parts), ...endOf(task) };
  });
  handle("tasks/cancel", async (taskId) => {
    await tools.cancel(taskId, request.caller);
    return {};
  });
  // The gateway requests no input, so input responses are ignored, as the extension requires.
  handle("tasks/update", async (taskId) => {
    await tools.task(taskId, request.caller);
    return {};
  });
}

/** The refusal of a client that did not declare the extension. */
function undeclared(): MissingRequiredClientCapabilityError {
  const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  return new MissingRequiredClientCapabilityError({ requiredCapabilities });
}

/** The extension has a code of its own for a task that does not exist. */
function refuseUnknown(thrown: unknown): never {
  const error = GatewayError.from(thrown);
  if (error.name !== "turn-not-found") throw error;
  throw new GatewayError("invalid-params", "There is no task with this id, or your key may not see it.");
}

function stateOf({ turn, status }: McpTask, { retentionMs }: ToolParts) {
  const { turnId, createdAt, startedAt, endedAt } = turn;
  return {
    taskId: turnId,
    status,
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(endedAt ?? startedAt ?? createdAt).toISOString(),
    ttlMs: retentionMs(),
    pollIntervalMs: POLL_EVERY_MS,
  };
}

/** The result of a task that has ended. A failed turn is a result with `isError`: the status `failed` is for errors of the protocol. */
function endOf({ status, answer }: McpTask): object {
  if (status === "working" || status === "cancelled" || answer === undefined) return {};
  return { status: "completed", result: { ...resultOf(answer, false), resultType: "complete" } };
}

/** Params with the id of a task. */
const TASK_PARAMS: StandardSchemaV1<unknown, { taskId: string }> = {
  "~standard": {
    version: 1,
    vendor: "agent-gateway",
    validate: (value) => {
      const { taskId } = (value ?? {}) as { taskId?: unknown };
      return typeof taskId === "string"
        ? { value: { taskId } }
        : { issues: [{ message: "`taskId` must be a string" }] };
    },
  },
};
