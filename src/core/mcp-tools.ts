import type { CallContext, Caller } from "#core/call.ts";
import type { Turn } from "#store/store.ts";

/** The tools behind the MCP door. They depend on the caller: its scopes and its agents. Any number of callers may use them at once. */
export type McpTools = {
  /** The tools that this caller may use, in a stable order: of agents, of skills, `turn_get`, of operators. */
  list(caller: RestCaller): Promise<readonly McpTool[]>;
  /** The tool with this name; undefined and errors as for `call`. The other tools are not built, so it is cheap with many agents and skills. */
  find(name: string, caller: RestCaller): McpTool | undefined;
  /**
   * Calls a tool; undefined if there is none with this name for the caller. Throws a GatewayError only if access is refused, `forbidden`, or if the
   * gateway failed, `internal`. Every other failure is an answer with `isError`: a model can read it and act on it.
   */
  call(name: string, args: unknown, call: McpCall): Promise<McpAnswer | undefined>;
  /**
   * Starts the turn of a tool with `startsTurn`. The turn is durable when this resolves, which is when it has ended or after `waitMs`. Undefined and
   * errors as for `call`. Without a turn, `answer` says why none was started.
   */
  start(name: string, args: unknown, call: McpCall): Promise<McpTask | McpRefusal | undefined>;
  /** Throws `turn-not-found`, also if the caller may not use the agent of the turn. */
  task(turnId: string, caller: RestCaller): Promise<McpTask>;
  /** Cancels the turn. Resolves when it has ended, or with its state after a second. */
  cancel(turnId: string, caller: RestCaller): Promise<McpTask>;
  skills: McpSkills;
};

export type RestCaller = Extract<Caller, { surface: "rest" }>;

/** The section `gateway.mcp` of the configuration in force. `agents`: undefined for all. */
export type McpSettings = {
  agents?: readonly string[] | undefined;
  operator: false | "read" | "write";
  skills: boolean;
};

/** One tool as it is listed. The schemas are JSON Schemas of an object: 2020-12, unless a skill's own names another one. */
export type McpTool = {
  name: string;
  title: string;
  description: string;
  inputSchema: object;
  outputSchema: object | undefined;
  hint: "read" | "write" | "destructive";
  /** Its answers have no text of senders or agents. */
  isTrusted: boolean;
  /** Its call is a turn, and so may be a task. */
  startsTurn: boolean;
};

/** `text` is for the model. `structured` is valid against `outputSchema`. */
export type McpAnswer = {
  text: string;
  /** A further text for the model, which is not part of a reply: how to continue its conversation. */
  note?: string | undefined;
  structured?: object | undefined;
  isError?: boolean | undefined;
  /** The name of the error in the contract, for the access line. */
  error?: string | undefined;
};

export type McpCall = CallContext & {
  caller: RestCaller;
  /** The longest time that the call waits for its turn. */
  waitMs: number;
  /** Called with the number of steps of the turn so far, after each step while the call waits. */
  progress?: ((steps: number) => void) | undefined;
  /** Called if the call repeats an earlier one by its `Idempotency-Key`: it starts nothing. */
  replayed?: (() => void) | undefined;
};

/** A turn that a tool started. `answer` is set once it has ended. */
export type McpTask = { turn: Turn; status: McpTaskStatus; answer: McpAnswer | undefined };
export type McpTaskStatus = "working" | "completed" | "failed" | "cancelled";
export type McpRefusal = { turn?: undefined; answer: McpAnswer };

/** The folders of skills, for the skills extension. */
export type McpSkills = {
  /** The skills that the caller may trigger, by id, if it also may read them: keys with the scope `admin`. None while `gateway.mcp.skills` is off. */
  list(caller: RestCaller): readonly McpSkill[];
  /** The skill with this id, if it is in the list. */
  find(id: string, caller: RestCaller): McpSkill | undefined;
};

export type McpSkill = {
  id: string;
  /** The regular files of its folder by their paths in it, `SKILL.md` among them. Links, files beyond the limits and names with a leading dot are left out. */
  files(): Promise<readonly McpSkillFile[]>;
};

export type McpSkillFile = {
  path: string;
  size: number;
  /** In milliseconds. A changed file has another size or time. */
  modified: number;
  /** The bytes of the file; undefined if it cannot be read at present. */
  read(): Promise<Uint8Array | undefined>;
};
