import type { Index } from "#generated/rest-types.ts";
import { servedPlaces } from "./nothing-at.ts";

/** The surfaces of a listener. */
export type Served = { surfaces: readonly string[]; webhookPath: string };

type Place = ReturnType<typeof servedPlaces>[number];

const DESCRIPTION = "A gateway in front of conversational agents.";

/** The places of a listener, as JSON. */
export function indexOf(served: Served): Index {
  return {
    name: "agent-gateway",
    description: DESCRIPTION,
    paths: placesOf(served).map(({ prefix: path, description }) => ({ path, description })),
  };
}

function placesOf({ surfaces, webhookPath }: Served): Place[] {
  return servedPlaces(webhookPath).filter(({ surface }) => surface === "always" || surfaces.includes(surface));
}

/** The same as a page. */
export function indexPageOf(served: Served): string {
  return `<!doctype html>
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
}

function rowOf({ prefix, description, isLink }: Place): string {
  const shown = prefix.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return `<dt>${isLink ? `<a href="${shown}">${shown}</a>` : shown}</dt><dd>${description}</dd>`;
}

/** True if a client asks for a page: it names HTML, and does not exclude it. A client that accepts anything gets JSON. */
export function wantsPage(accept = ""): boolean {
  return accept.split(",").some((range) => {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    return type === "text/html" && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
