import type { Index } from "#generated/rest-types.ts";

/** The surfaces of a listener. */
export type Served = { surfaces: readonly string[]; openai: boolean; webhookPath: string };

type Place = Index["paths"][number] & { isLink?: true };

const DESCRIPTION = "A gateway in front of conversational agents.";

/** Where things are, as JSON. */
export const indexOf = (served: Served): Index => ({
  name: "agent-gateway",
  description: DESCRIPTION,
  paths: placesOf(served).map(({ path, description }) => ({ path, description })),
});

const placesOf = ({ surfaces, openai, webhookPath }: Served): Place[] => {
  const of = (surface: string, ...places: Place[]) => (surfaces.includes(surface) ? places : []);
  return [
    ...of("rest", { path: "/api/v1", description: "REST, with a REST key: messages, skills, turns." }),
    ...(openai ? [{ path: "/v1", description: "For clients of OpenAI, with a REST key: agents as models." }] : []),
    ...of(
      "rpc",
      { path: "/rpc", description: "JSON-RPC 2.0 by POST, with an RPC token." },
      { path: "/rpc/ws", description: "JSON-RPC 2.0 and live pushes on a WebSocket, with an RPC token." },
    ),
    ...of("webhooks", { path: webhookPath, description: "Webhooks, with the webhook token or a signature." }),
    ...of("console", { path: "/console", description: "The console: see what happens, and make keys.", isLink: true }),
    ...of(
      "docs",
      { path: "/docs", description: "The reference of every call, as a page.", isLink: true },
      { path: "/openapi.json", description: "The contract of REST and webhooks.", isLink: true },
      { path: "/openrpc.json", description: "The contract of JSON-RPC.", isLink: true },
    ),
    ...of("metrics", { path: "/metrics", description: "Figures for Prometheus, with an RPC token." }),
    { path: "/healthz", description: "Whether the process lives.", isLink: true },
    { path: "/readyz", description: "Whether the gateway takes work.", isLink: true },
  ];
};

/** The same as a page. */
export const indexPageOf = (served: Served): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Agent Gateway</title>
<style>
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 48rem; margin: 3rem auto; padding: 0 1rem; }
dt { font-family: ui-monospace, monospace; margin-top: .75rem; }
dd { margin: 0; }
</style>
<h1>Agent Gateway</h1>
<p>${DESCRIPTION} This address serves:</p>
<dl>
${placesOf(served).map(rowOf).join("\n")}
</dl>
</html>
`;

const rowOf = ({ path, description, isLink }: Place): string => {
  const shown = path.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return `<dt>${isLink ? `<a href="${shown}">${shown}</a>` : shown}</dt><dd>${description}</dd>`;
};

/** Whether a client asks for a page: it names HTML, and does not rule it out. Whoever takes anything gets JSON. */
export const wantsPage = (accept = ""): boolean =>
  accept.split(",").some((range) => {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    return type === "text/html" && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
