import type { CallContext, Caller } from "#core/call.ts";
import type { Turn } from "#store/store.ts";

/** The tools of the MCP door: the interface between the door and the bodies in `src/handlers/mcp/`. */
export type McpTools = {
  /** The tools that this caller may use, in a stable order: of agents, of skills, `turn_get`, of operators. */
  list(caller: RestCaller): Promise<readonly McpTool[]>;
  /**
   * Calls a tool. Resolves with undefined if there is none with this name for the caller. Throws a GatewayError if the call is refused: `forbidden`
   * for a tool that the scope of the caller does not allow, `invalid-request` for arguments that its schema does not allow, and for example
   * `rate-limited` or `budget-exceeded` before a turn starts. A failure of the tool is an answer with `isError`.
   */
  call(name: string, args: unknown, call: McpCall): Promise<McpAnswer | undefined>;
  /** Starts the turn of a tool with `startsTurn`. It is durable when this resolves. Resolves after `waitMs` or when the turn has ended. Throws as `call` does. */
  start(name: string, args: unknown, call: McpCall): Promise<McpTask | undefined>;
  /** Throws `turn-not-found`, also if the caller may not use the agent of the turn. */
  task(turnId: string, caller: RestCaller): Promise<McpTask>;
  /** Cancels the turn. Resolves when it has ended, or with its state after a second. */
  cancel(turnId: string, caller: RestCaller): Promise<McpTask>;
  skills: McpSkills;
};

export type RestCaller = Extract<Caller, { surface: "rest" }>;

/** One tool as it is listed. The schemas are JSON Schema 2020-12 of an object. */
export type McpTool = {
  name: string;
  title: string;
  description: string;
  inputSchema: object;
  outputSchema: object | undefined;
  hint: "read" | "write" | "destructive";
  /** Its call is a turn, and so may be a task. */
  startsTurn: boolean;
};

/** `text` is for the model. `structured` is valid against `outputSchema`. */
export type McpAnswer = { text: string; structured?: object | undefined; isError?: boolean | undefined };

export type McpCall = CallContext & {
  caller: RestCaller;
  /** The longest time that the call waits for its turn. */
  waitMs: number;
  /** Called with the number of steps of the turn so far, after each step while the call waits. */
  progress?: ((steps: number) => void) | undefined;
};

/** A turn that a tool started. `answer` is set once it has ended. */
export type McpTask = { turn: Turn; status: McpTaskStatus; answer: McpAnswer | undefined };
export type McpTaskStatus = "working" | "completed" | "failed" | "cancelled";

/** The folders of skills, for the skills extension. */
export type McpSkills = {
  /** The skills that the caller may trigger, by id. None while `gateway.mcp.skills` is off. */
  list(caller: RestCaller): readonly McpSkill[];
};

export type McpSkill = {
  id: string;
  /** The regular files of its folder by their paths in it, `SKILL.md` among them. Links are left out, and so are files beyond the limits. */
  files(): Promise<readonly McpSkillFile[]>;
  /** The bytes of a file. Undefined if the path is not a file of the folder, or leads out of it. */
  read(path: string): Promise<Uint8Array | undefined>;
};
/** `modified`: in milliseconds. A changed file has another size or time. */
export type McpSkillFile = { path: string; size: number; modified: number };
