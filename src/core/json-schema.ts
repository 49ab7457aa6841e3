import { createContext, Script } from "node:vm";
import type { ValidationError } from "#generated/validators/validate.ts";
import { type FaultText, faultOf } from "#kit/fault-words.ts";

type Check = (given: unknown) => readonly FaultText[];
/** The check that Ajv compiles. `errors`: the faults of its last call. */
type Validate = ((given: unknown) => unknown) & { errors?: readonly Fault[] | null };
type Fault = ValidationError & { parentSchema?: Readonly<Record<string, unknown>> };

const FAULTS_TOLD = 20;
const HINTED = 5;

/**
 * Compiles a JSON Schema, of 2020-12 unless it names draft-07, to a check that returns the faults of a value with their places. The compiler is loaded
 * with the first schema. Throws if `schema` is not valid. `isOurs`: the schema is not validated, and the check writes its defaults into the value.
 * The check of another schema ends after a short time, whatever the schema and the value are, and does not throw.
 */
export async function compileCheck(schema: object, { isOurs = false } = {}): Promise<Check> {
  const { $schema } = schema as { $schema?: unknown };
  const isOld = typeof $schema === "string" && $schema.includes("draft-07");
  const { Ajv } = isOld ? await import("ajv") : { Ajv: (await import("ajv/dist/2020.js")).Ajv2020 };
  const asked = { strict: false, validateFormats: false, allErrors: true, verbose: true, logger: false } as const;
  if (!isOurs && "$async" in schema) throw new Error("$async is not supported, as it turns the validation off");
  const options = { ...asked, ownProperties: true, useDefaults: isOurs, validateSchema: !isOurs };
  const validate = withStack(() => new Ajv(options).compile(schema), refuseEndless);
  return isOurs ? checkOf(validate, validate) : boundedCheck(validate);
}

function checkOf(validate: Validate, run: (given: unknown) => unknown): Check {
  return (given) => {
    if (run(given) === true) return [];
    return (validate.errors ?? [undefined]).slice(0, FAULTS_TOLD).map((fault, n) => {
      const properties = n < HINTED ? fault?.parentSchema?.properties : undefined;
      return faultOf(fault, Object.keys(Object(properties)));
    });
  };
}

const MOST_MS = 200;
const LEAST_MS = 10;

/**
 * A pattern can take years for a short text, and a reference to itself never ends. A check that exceeds its time or the stack is a fault. Each timeout halves
 * the time limit of the schema, so that a caller who repeats the request cannot keep the gateway busy. Throws if no object can be checked.
 */
function boundedCheck(validate: Validate): Check {
  let limitMs = MOST_MS;
  const check = checkOf(validate, (given) => runFor(limitMs, () => validate(given)));
  const bounded: Check = (given) => {
    try {
      return check(given);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
      limitMs = Math.max(LEAST_MS, limitMs / 2);
      return [{ pointer: "", message: TOO_SLOW }];
    }
  };
  withStack(() => bounded({}), refuseEndless);
  return (given) =>
    withStack(
      () => bounded(given),
      () => [{ pointer: "", message: TOO_DEEP }],
    );
}

const TOO_SLOW = "could not be validated in time: a pattern or another rule of the schema is too slow for this value";
const TOO_DEEP = "could not be validated: the value is nested too deeply, or the schema refers to itself without end";

function refuseEndless(): never {
  throw new Error("a $ref leads to itself without end, or the schema is nested too deeply");
}

/** The result of the work, or `exceeded` if it needs more than the stack. */
function withStack<T>(run: () => T, exceeded: () => T): T {
  try {
    return run();
  } catch (error) {
    if ((error as Error).name === "RangeError") return exceeded();
    throw error;
  }
}

const RUN = new Script("run()");
let context: { run: (() => unknown) | undefined } | undefined;

/** Runs the function for at most this time, and throws `ERR_SCRIPT_EXECUTION_TIMEOUT` after it. The engine interrupts a regular expression, too. */
function runFor(ms: number, run: () => unknown): unknown {
  context ??= createContext({ run: undefined }) as { run: undefined };
  context.run = run;
  try {
    return RUN.runInContext(context, { timeout: Math.ceil(ms) });
  } finally {
    context.run = undefined;
  }
}
