import { routes } from "#generated/routes.ts";
import { restPart } from "#wire/pages/documents.ts";
import { createRequestValidation, type ValidateRequest } from "#wire/rest/rest-validation.ts";

/** The contract that requests of REST are held to: one for all gateways of a process, as compiling takes long. */
export const restContract = (): Promise<ValidateRequest> => (contract ??= compile());

let contract: Promise<ValidateRequest> | undefined;

const compile = async (): Promise<ValidateRequest> => {
  const { default: openapi } = await import("#generated/openapi.json");
  const restRoutes = routes.filter(({ surface }) => surface === "rest");
  return createRequestValidation(restPart(openapi), restRoutes);
};
