import { routes } from "#generated/routes.ts";
import { movePath } from "./documents.ts";

const pathsOf = (is: (route: (typeof routes)[number]) => boolean): string[] => [
  ...new Set(routes.filter(is).map(({ path }) => path)),
];
const below = (prefix: string) => pathsOf(({ path }) => path === prefix || path.startsWith(`${prefix}/`));

/** Where each surface has its paths, as the contract lists them. */
export const servedPlaces = (webhookPath: string) => [
  { surface: "rest", prefix: "/api/v1", paths: below("/api/v1") },
  { surface: "openai", prefix: "/v1", paths: below("/v1") },
  { surface: "rpc", prefix: "/rpc", paths: ["/rpc", "/rpc/ws"] },
  { surface: "webhooks", prefix: webhookPath, paths: below("/hooks").map((path) => movePath(path, webhookPath)) },
  { surface: "console", prefix: "/console", paths: ["/console"] },
  { surface: "docs", prefix: "/docs", paths: ["/docs"] },
  { surface: "docs", prefix: "/openapi.json", paths: ["/openapi.json"] },
  { surface: "docs", prefix: "/openrpc.json", paths: ["/openrpc.json"] },
  { surface: "metrics", prefix: "/metrics", paths: ["/metrics"] },
  { surface: "always", prefix: "/healthz", paths: ["/healthz"] },
  { surface: "always", prefix: "/readyz", paths: ["/readyz"] },
];
