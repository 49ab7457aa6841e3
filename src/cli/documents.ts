import openapi from "#generated/openapi.json" with { type: "json" };
import openrpc from "#generated/openrpc.json" with { type: "json" };

/** The contracts of this version. */
export const documents: { openapi: object; openrpc: object } = { openapi, openrpc };
