import { type FaultText, faultOf } from "#kit/fault-words.ts";

const FAULTS_TOLD = 20;
const HINTED = 5;

/**
 * Compiles a JSON Schema, of 2020-12 unless it names draft-07, to a check that returns the faults of a value with their places. The compiler is loaded
 * with the first schema. Throws if it is not a schema. `isOurs`: the schema is known to be one, and the check writes its defaults into the value.
 */
export async function compileCheck(
  schema: object,
  { isOurs = false } = {},
): Promise<(given: unknown) => readonly FaultText[]> {
  const { $schema } = schema as { $schema?: unknown };
  const isOld = typeof $schema === "string" && $schema.includes("draft-07");
  const { Ajv } = isOld ? await import("ajv") : { Ajv: (await import("ajv/dist/2020.js")).Ajv2020 };
  const asked = { strict: false, validateFormats: false, allErrors: true, verbose: true, logger: false } as const;
  const validate = new Ajv({ ...asked, useDefaults: isOurs, validateSchema: !isOurs }).compile(schema);
  return (given) => {
    if (validate(given)) return [];
    return (validate.errors ?? []).slice(0, FAULTS_TOLD).map((fault, n) => {
      const properties: unknown = n < HINTED ? fault.parentSchema?.properties : undefined;
      return faultOf(fault, Object.keys(Object(properties)));
    });
  };
}
