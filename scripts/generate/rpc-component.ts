import { literal } from "./json.ts";
import { comment, header } from "./output.ts";

/**
 * Our component for @open-rpc/generator: it prints what has one entry for each method. The generator hands templates the
 * document with its references unfolded; of that only names and extensions are used, the shapes have types of their own.
 */
type Param = { name: string; required?: boolean };
type Method = { name: string; summary?: string; params: Param[]; "x-errors"?: string[]; "x-idempotent"?: boolean };
type Template = (given: { openrpcDocument: { methods: Method[] } }) => string;

const from = header("openrpc.json");

const printHandlers: Template = ({ openrpcDocument: { methods } }) => `${from}
import type { RpcMethods } from "./rpc-types.ts";

/** One body for each method; it may answer at once. \`Ctx\` is the context that the server adds to the params. */
export interface RpcHandlers<Ctx> {
${methods
  .map(
    ({ name, summary = "" }) =>
      `${comment(summary, "  ")}  ${literal(name)}: (params: RpcMethods[${literal(name)}]["params"], ctx: Ctx) => Answer<RpcMethods[${literal(name)}]["result"]>;`,
  )
  .join("\n")}
}

type Answer<Result> = Result | Promise<Result>;
`;

const printMethods: Template = ({ openrpcDocument: { methods } }) => `${from}
import type { ErrorName } from "./errors.ts";
import type { RpcMethod } from "./rpc-types.ts";

export interface MethodRow {
  /** The permission that a token needs to call it. */
  permission: RpcMethod;
  /** All of its errors. */
  errors: readonly ErrorName[];
  params: readonly string[];
  required: readonly string[];
  /** Accepts \`idempotencyKey\` and returns \`replayed\`. */
  idempotent: boolean;
}

export const methods = {
${methods
  .map(
    ({ name, params, "x-errors": errors = [], "x-idempotent": idempotent = false }) => `  ${literal(name)}: {
    permission: ${literal(name)},
    errors: [${errors.map(literal).join(", ")}],
    params: [${params.map((param) => literal(param.name)).join(", ")}],
    required: [${params
      .filter((param) => param.required)
      .map((param) => literal(param.name))
      .join(", ")}],
    idempotent: ${idempotent},
  },`,
  )
  .join("\n")}
} as const satisfies Record<RpcMethod, MethodRow>;
`;

/** The generator asks for a default export. */
export default {
  hooks: {
    templateFiles: {
      typescript: [
        { path: "rpc-handlers.ts", template: printHandlers },
        { path: "methods.ts", template: printMethods },
      ],
    },
  },
  staticPath: () => undefined,
};
