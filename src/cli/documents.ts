import openapi from "#generated/openapi.json";
import openrpc from "#generated/openrpc.json";

/** The contracts of this version. */
export const documents: { openapi: object; openrpc: object } = { openapi, openrpc };
