import { routes } from "#generated/routes.ts";
import { restPart } from "#wire/documents.ts";
import type { HoldToContract } from "#wire/rest.ts";
import { createRequestValidation } from "#wire/rest-validation.ts";

/** What requests of REST are held to: the same for all gateways of a process, as compiling takes long. */
export const restContract = (): Promise<HoldToContract> => (contract ??= compile());

let contract: Promise<HoldToContract> | undefined;

const compile = async (): Promise<HoldToContract> => {
  const [{ default: openapi }, { holdHot }] = await Promise.all([
    import("#generated/openapi.json"),
    import("#wire/rest-hot.ts"),
  ]);
  const restRoutes = routes.filter(({ surface }) => surface === "rest");
  return holdHot(await createRequestValidation(restPart(openapi), restRoutes));
};
