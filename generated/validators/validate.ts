// Copied by "npm run generate" from scripts/generate/runtime/validators/validate.ts; do not edit.
/** One fault, as Ajv describes it. */
export interface ValidationError {
  /** A JSON pointer to the invalid value. */
  instancePath: string;
  schemaPath: string;
  /** The violated keyword, such as `required` or `pattern`. */
  keyword: string;
  params: Record<string, unknown>;
  message?: string;
}

/** Returns true if a value matches its schema. `errors` has the faults of the last call: read them before the next one. */
export type Validate = ((value: unknown) => boolean) & { errors?: null | ValidationError[] };
