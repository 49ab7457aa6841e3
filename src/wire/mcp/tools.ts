import type { CallContext, Caller } from "#core/call.ts";
import type { Turn } from "#store/store.ts";

export type RestCaller = Extract<Caller, { surface: "rest" }>;

/** One tool as it is listed. */
export type McpTool = {
  name: string;
  title: string;
  description: string;
  /** JSON Schema 2020-12 of an object. */
  inputSchema: object;
  outputSchema: object | undefined;
  hint: "read" | "write" | "destructive";
  /** Its call is a turn, and so may be a task. */
  startsTurn: boolean;
};

/** The answer of a call. `text` is for the model; `structured` is valid against `outputSchema`. */
export type McpAnswer = { text: string; structured?: object | undefined; isError?: boolean | undefined };

/** `waitMs`: the longest time that a call waits for its turn. */
export type McpCall = CallContext & { waitMs: number };

/** A turn that a tool started. `answer` is set once it has ended. */
export type McpTask = { turn: Turn; answer: McpAnswer | undefined };

/** The tools behind the MCP door. They depend on the caller: its scopes and its agents. Any number of callers may use them at once. */
export type McpTools = {
  /** The tools that this caller may use. */
  list(caller: RestCaller): Promise<readonly McpTool[]>;
  /**
   * Calls a tool; undefined if there is none with this name. Throws a GatewayError: `forbidden` for a tool that the caller's scope does
   * not allow.
   */
  call(name: string, args: unknown, call: McpCall): Promise<McpAnswer | undefined>;
  /** Starts the turn of a tool with `startsTurn`. The turn is durable when this resolves. */
  start(name: string, args: unknown, call: McpCall): Promise<McpTask>;
  task(turnId: string, caller: RestCaller): Promise<McpTask>;
  cancel(turnId: string, caller: RestCaller): Promise<McpTask>;
  /** The folders of skills, for the skills extension. */
  skills: McpSkills;
};

export type McpSkills = { list(caller: RestCaller): Promise<readonly { id: string; path: string }[]> };
