import { parseTemplate, type Template } from "#kit/mapping-template.ts";
import { isSecretHeader } from "#kit/secret-headers.ts";
import { coalesceOf, type WrittenCoalesce } from "./config.ts";
import type { Findings, Path, Report } from "./problems.ts";

/** The parts of a mapping that name a place. */
export type WrittenPlaces = {
  session?: string | undefined;
  channel?: string | undefined;
  delivery?: "none" | "announce" | undefined;
  to?: string | undefined;
  thread?: string | undefined;
  coalesce?: WrittenCoalesce | undefined;
};

/** Finds templates of a session, a key or an address that a body could misuse, or that have no effect. */
export function checkPlaces(written: WrittenPlaces, at: Path, { refuse, warn }: Findings): void {
  const { session, coalesce, channel, delivery } = written;
  if (session !== undefined) checkSession(session, [...at, "session"], refuse);
  if (coalesce !== undefined) checkCoalesce(coalesce, [...at, "coalesce"], refuse);
  for (const field of ["to", "thread"] as const) {
    const address = written[field];
    if (address === undefined) continue;
    const here = [...at, field];
    if (readTemplate(address, here, refuse) && !/\S/.test(address)) refuse(here, "is blank.");
    if (channel === undefined) refuse(here, "needs `channel`: it is an address in that channel.", "key");
    else if (delivery !== "announce") warn(here, "has no effect without `delivery: announce`.", "key");
  }
}

/** The template; undefined if it is refused. */
function readTemplate(text: string, at: Path, refuse: Report): Template | undefined {
  const template = parseTemplate(text);
  if ("flaw" in template) {
    refuse(at, template.flaw);
    return undefined;
  }
  for (const part of template.parts) {
    if (typeof part === "string") continue;
    const isSecret = part.lookups.some(
      (one) => one.in === "body" && one.steps.some((step) => isSecretHeader(step.toLowerCase())),
    );
    if (!isSecret) continue;
    refuse(
      at,
      `holds {${part.written}}, whose name suggests a secret: sessions, keys and addresses are visible in logs and records.`,
    );
    return undefined;
  }
  return template;
}

const SESSION = /^webhook:(?:[ -~]{0,247}[!-~])$/;
/** The most characters before the first placeholder: a cut name and its hash have room behind them. */
const LONGEST_PREFIX = 190;

function checkSession(session: string, at: Path, refuse: Report): void {
  const template = readTemplate(session, at, refuse);
  if (!template) return;
  const literals = template.parts.filter((part) => typeof part === "string");
  const [prefix] = template.parts;
  if (literals.length === template.parts.length) {
    if (!SESSION.test(literals.join("")))
      refuse(at, "must be `webhook:` and at most 248 printable ASCII characters, for example `webhook:github`.");
  } else if (typeof prefix !== "string" || !/^webhook:./.test(prefix))
    refuse(
      at,
      "must have more than `webhook:` before its first placeholder, for example `webhook:pr-{body.number}`: otherwise a request could choose any session.",
    );
  else if (prefix.length > LONGEST_PREFIX)
    refuse(at, `has more than ${LONGEST_PREFIX} characters before its first placeholder.`);
  else if (literals.some((text) => !/^[ -~]*$/.test(text)) || session.endsWith(" "))
    refuse(at, "may have only printable ASCII characters outside its placeholders, and no space at its end.");
}

const [SECOND, HOUR] = [1_000, 3_600_000];

function checkCoalesce(coalesce: WrittenCoalesce, at: Path, refuse: Report): void {
  const { key } = coalesce;
  if (readTemplate(key, [...at, "key"], refuse) && !/\S/.test(key))
    refuse([...at, "key"], "is blank: write a value that all requests of a burst share, for example `{body.number}`.");
  const { windowMs, maxWaitMs } = coalesceOf(coalesce);
  if (windowMs < SECOND || windowMs > HOUR) refuse([...at, "window"], "must be from `1s` to `1h`.");
  else if (maxWaitMs > 24 * HOUR) refuse([...at, "maxWait"], "must be at most `24h`.");
  else if (maxWaitMs < windowMs)
    refuse([...at, "maxWait"], "is shorter than `window`: a burst waits at least that long. By default it is `5m`.");
}
