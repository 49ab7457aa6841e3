import type { Config, SurfaceName } from "#config/config.ts";
import { type Place, servedPlaces } from "#wire/pages/nothing-at.ts";

/** A surface is on when the configuration has what it needs and does not switch it off. */
export const isOn = ({ gateway, webhooks }: Config, surface: SurfaceName): boolean => {
  if (surface === "webhooks") return webhooks.enabled;
  if (surface === "rest" || surface === "rpc" || surface === "console") return gateway[surface].enabled;
  return surface !== "metrics" || gateway.rpc.enabled;
};

/** Where the configuration has what opens a surface. */
const SECRET_OF = {
  rest: "gateway.rest.auth.keys",
  rpc: "gateway.rpc.auth.tokens",
  webhooks: "webhooks.token",
  console: "gateway.console.token",
} as const;

/** The surfaces that answer 404, and why. */
export const closedSurfaces = (config: Config): { surface: string; reason: string }[] =>
  (["rest", "rpc", "webhooks", "console"] as const)
    .filter((surface) => !isOn(config, surface))
    .map((surface) => ({ surface, reason: `it has no secret (${SECRET_OF[surface]}), or its enabled is false` }));

/** Why a listener has nothing below a surface's prefix. */
const whyClosed = (config: Config, surface: SurfaceName): string => {
  if (isOn(config, surface)) return `\`${surface}\` is not among the \`surfaces\` of this listener (gateway.listeners)`;
  const opening = surface === "metrics" ? "rpc" : (surface as keyof typeof SECRET_OF);
  const key = opening === "webhooks" ? "webhooks" : `gateway.${opening}`;
  return `\`${surface}\` is off. A secret in ${SECRET_OF[opening]} opens it, unless ${key}.enabled is false`;
};

/** The places of a listener that has these surfaces open, for whoever asks where nothing is. */
export const placesIn = (config: Config, surfaces: readonly SurfaceName[]): Place[] => {
  const open = [
    "always",
    ...surfaces,
    ...(config.gateway.openai.enabled && surfaces.includes("rest") ? ["openai"] : []),
  ];
  return servedPlaces(config.webhooks.path).map(({ surface, prefix, paths }) => {
    // The door that replaces a closed OpenAI door says so itself.
    const closed =
      open.includes(surface) || surface === "openai" ? undefined : whyClosed(config, surface as SurfaceName);
    return { prefix, paths: open.includes(surface) ? paths : [], closed };
  });
};
