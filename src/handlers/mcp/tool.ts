import { compileCheck } from "#core/json-schema.ts";
import type { McpAnswer, McpCall, McpTool } from "#core/mcp-tools.ts";
import { GatewayError } from "#kit/errors.ts";
import { ended, type FaultText, foremost } from "#kit/fault-words.ts";
import { once } from "#kit/once.ts";
import type { Turn } from "#store/store.ts";

/** The arguments of a call. A body checks them before it uses them. */
export type Args = Record<string, unknown>;

/** A tool with its body. Bodies throw GatewayErrors. */
export type Tool = TurnTool | PlainTool;
/** Its call is a turn, which is stored when `start` resolves. */
export type TurnTool = McpTool & { startsTurn: true; start: (args: Args, call: McpCall) => Promise<Turn> };
export type PlainTool = McpTool & { startsTurn: false; answer: (args: Args, call: McpCall) => Promise<McpAnswer> };

/** The arguments as an object. Throws `invalid-request` for other JSON. */
export function argsOf(given: unknown): Args {
  if (given === undefined || given === null) return {};
  if (typeof given === "object" && !Array.isArray(given)) return given as Args;
  throw invalidArguments([{ pointer: "", message: "must be an object" }]);
}

type Check = (given: unknown) => readonly FaultText[];
/** Each schema is compiled once, at its first call. */
const checks = new WeakMap<object, () => Promise<Check>>();

/** The arguments with the defaults of the schema. Throws `invalid-request` with their faults. */
export async function checkedBy<T extends object>(schema: object, args: Args): Promise<T> {
  const check = checks.get(schema) ?? once((): Promise<Check> => compileCheck(schema, { isOurs: true }));
  checks.set(schema, check);
  const checked = structuredClone(args);
  const faults = (await check())(checked);
  if (faults.length > 0) throw invalidArguments(faults);
  return checked as T;
}

/** The most faults that an error names. */
const FAULTS_NAMED = 5;

/** The refusal of arguments, which names the first faults in sentences. */
export function invalidArguments(faults: readonly FaultText[]): GatewayError {
  const first = foremost(faults);
  const named = [first, ...faults.filter((fault) => fault !== first)].slice(0, FAULTS_NAMED);
  const words = named.flatMap((fault) => (fault ? [ended(`${nameOfPlace(fault.pointer)} ${fault.message}`)] : []));
  return new GatewayError("invalid-request", words.join(" "), { errors: faults });
}

function nameOfPlace(pointer: string): string {
  return pointer.slice(1).replaceAll("/", ".") || "The arguments";
}
