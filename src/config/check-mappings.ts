import { FORM } from "#kit/forms.ts";
import { type Lookup, lookUp, parseLookup, textOf } from "#kit/mapping-paths.ts";
import { parseTemplate } from "#kit/mapping-template.ts";
import { checkPlaces, type WrittenPlaces } from "./check-mapping-places.ts";
import type { CheckedConfig } from "./config.ts";
import { type Findings, meantOrListed, notAmong, type Path, type Report } from "./problems.ts";

/** The parts of a mapping that are checked. */
export type WrittenMapping = WrittenPlaces & {
  match: Readonly<Record<string, string | number | boolean | readonly (string | number | boolean)[]>>;
  message: string;
  agent?: string | undefined;
  model?: string | undefined;
  verify?: { type: string; url?: string | undefined } | undefined;
};
/** The parts of the configuration that a mapping refers to. */
export type MappingAround = {
  gateway: { defaultAgent?: string | undefined; announceTo?: string | undefined };
  agents: Readonly<Record<string, ModelNames>>;
  channels: Readonly<Record<string, { type: string; botToken?: string | undefined; to?: string | undefined }>>;
  webhooks: { mappings: Readonly<Record<string, WrittenMapping>> };
};
type Pair = { path: string; texts: readonly string[]; lookup: Lookup };
type Rule = { name: string; written: WrittenMapping; at: Path; pairs: readonly Pair[] };

/** Finds mappings that can never match, have no agent or channel, or are never reached. */
export function checkMappings(config: CheckedConfig, { refuse, warn }: Findings): void {
  const rules = rulesOf(config.webhooks.mappings, refuse);
  for (const rule of rules) checkRule(rule, config, { refuse, warn });
  checkSessions(rules, config, { refuse, warn });
  checkReach(rules, config, refuse, warn);
}

/** Checks another mapping, after those of a valid configuration. It replaces a mapping with the same name. */
export function checkMapping(around: MappingAround, name: string, written: WrittenMapping, findings: Findings): void {
  const { [name]: _, ...others } = around.webhooks.mappings;
  const rules = rulesOf({ ...others, [name]: written }, findings.refuse);
  checkRule(rules.at(-1) as Rule, around, findings);
  checkSessions(rules, around, findings);
}

function rulesOf(mappings: MappingAround["webhooks"]["mappings"], refuse: Report): Rule[] {
  return Object.entries(mappings).map(([name, written]) => {
    const at = ["webhooks", "mappings", name];
    return { name, written, at, pairs: readPairs(written, at, refuse) };
  });
}

function checkRule(rule: Rule, around: MappingAround, { refuse, warn }: Findings): void {
  checkPairs(rule, refuse);
  checkMessage(rule, refuse, warn);
  checkPlaces(rule.written, rule.at, { refuse, warn });
  checkSignedUrl(rule, refuse);
  checkTarget(rule, around, refuse, warn);
}

function readPairs({ match }: WrittenMapping, at: Path, refuse: Report): Pair[] {
  return Object.entries(match).flatMap(([path, expected]) => {
    const lookup = parseLookup(path);
    if (!("flaw" in lookup)) return [{ path, texts: [expected].flat().map(String), lookup }];
    refuse([...at, "match", path], lookup.flaw, "key");
    return [];
  });
}

/** The characters that a header's value can have, without spaces at its ends. */
const HEADER_VALUE = /^(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?$/;

const JSON_TYPE = /^application\/json\s*(?:;|$)/i;
const FORM_TYPE = new RegExp(`^${FORM}\\s*(?:;|$)`, "i");

function checkPairs({ pairs, at, written }: Rule, refuse: Report): void {
  pairs.forEach(({ path, lookup, texts }, index) => {
    const here = [...at, "match", path];
    const same = pairs.slice(0, index).find((other) => isBelow(lookup, other.lookup) && isBelow(other.lookup, lookup));
    if (same) refuse(here, `is the same place as ${same.path}: write it once.`, "key");
    if (lookup.in === "headers") {
      if (!texts.some((text) => HEADER_VALUE.test(text)))
        refuse(here, "can never match: no header has such a value, or one with a space around it.");
      const types = written.verify ? [JSON_TYPE, FORM_TYPE] : [JSON_TYPE];
      if (lookup.name === "content-type" && !texts.some((text) => types.some((type) => type.test(text))))
        refuse(
          here,
          `can never match: webhooks are accepted only as application/json${written.verify ? ` or ${FORM}` : ""}.`,
        );
      return;
    }
    const above = pairs.find(
      (other) => other !== same && isAbove(other.lookup, lookup) && !allows(other, lookup, texts),
    );
    if (above)
      refuse(
        here,
        `can never match together with \`${above.path}\`: when that one matches, this one has another value.`,
      );
    if (written.verify?.type === "slack" && path === "body.type" && texts.every((text) => text === "url_verification"))
      refuse(here, "can never match: Slack's url_verification is answered before mappings are tried.");
  });
}

/** True if the value at `inner` is the value at `outer` or a part of it. */
function isBelow(inner: Lookup, outer: Lookup): boolean {
  if (inner.in === "headers" || outer.in === "headers")
    return inner.in === "headers" && outer.in === "headers" && inner.name === outer.name;
  return outer.steps.every((step, index) => step === inner.steps[index]);
}

function isAbove(outer: Lookup, inner: Lookup): boolean {
  return isBelow(inner, outer) && !isBelow(outer, inner);
}

/** True if one of a pair's texts is JSON with one of these values at `inner`. */
function allows({ texts, lookup: outer }: Pair, inner: Lookup, wanted: readonly string[]): boolean {
  const steps = inner.in === "body" && outer.in === "body" ? inner.steps.slice(outer.steps.length) : [];
  return texts.some((text) => {
    if (!/^[[{]/.test(text)) return false;
    try {
      const found = textOf(lookUp({ in: "body", steps }, { headers: {}, body: JSON.parse(text) }));
      return found !== undefined && wanted.includes(found);
    } catch {
      return false;
    }
  });
}

function checkMessage({ written: { message }, at }: Rule, refuse: Report, warn: Report): void {
  const here = [...at, "message"];
  const template = parseTemplate(message);
  if ("flaw" in template) refuse(here, template.flaw);
  else if (!/\S/.test(message)) refuse(here, "is blank: write the message for the agent.");
  const doubled = /\{\{((?:body|headers)\.[^{}\r\n]*)\}\}/.exec(message);
  if (doubled)
    warn(
      here,
      `holds ${doubled[0]}, which stands for the text {${doubled[1]}}}: write {${doubled[1]}} to have it filled in.`,
    );
}

/** Checks the address that Twilio signs. */
function checkSignedUrl({ written: { verify }, at }: Rule, refuse: Report): void {
  if (verify === undefined) return;
  const { type, url } = verify;
  const here = [...at, "verify", "url"];
  if (type !== "twilio") {
    if (url !== undefined)
      refuse(here, `is only for \`twilio\`: the signatures of \`${type}\` are not over an address.`);
  } else if (url === undefined)
    refuse([...at, "verify"], "has no `url`: write the address as it is configured at Twilio, which signs it.");
  else if (!URL.canParse(url)) refuse(here, "must be an address, for example `https://example.com/hooks/sms`.");
  else if (/^[^/]*\/\/[^/?#]*@/.test(url))
    refuse(here, "must not contain a user name or a password: the signature is enough.");
  else if (url.includes("#")) refuse(here, "must end before the `#`: Twilio does not sign the rest.");
}

/** Backends that accept any name of a model. */
const ANY_MODEL = ["echo"];

function checkTarget({ written, at }: Rule, config: MappingAround, refuse: Report, warn: Report): void {
  const agents = Object.keys(config.agents);
  const name = written.agent ?? config.gateway.defaultAgent ?? agents[0] ?? "";
  const agent = Object.hasOwn(config.agents, name) ? config.agents[name] : undefined;
  if (!agent) {
    if (written.agent !== undefined) refuse([...at, "agent"], `names an agent ${notAmong(agents, name, "agents")}`);
  } else {
    const flaw = modelFlaw(name, agent, written.model);
    if (flaw !== undefined) refuse([...at, "model"], flaw);
  }

  const { channel, delivery, to, thread } = written;
  const named = channel !== undefined && Object.hasOwn(config.channels, channel) ? config.channels[channel] : undefined;
  if (named && delivery === "announce") checkAddress({ named, to, thread }, at, warn);
  if (delivery !== "announce" || config.gateway.announceTo !== undefined) return;
  if (channel === undefined)
    warn(
      [...at, "delivery"],
      "is `announce`, but there is no channel to announce to, so only subscribers receive replies: set `channel` or `gateway.announceTo`.",
    );
  else if (!named)
    warn(
      [...at, "channel"],
      `names a channel ${notAmong(Object.keys(config.channels), channel, "channels")} Until then, only subscribers receive the announcements of this mapping.`,
    );
}

type Address = { named: MappingAround["channels"][string]; to: string | undefined; thread: string | undefined };

/** Only a bot has addresses, and it needs one. */
function checkAddress({ named, to, thread }: Address, at: Path, warn: Report): void {
  const isBot = named.botToken !== undefined;
  if (isBot && to === undefined && named.to === undefined)
    warn(
      [...at, "channel"],
      "names a bot of Slack without an address, so no reply can be sent: set `to` of the mapping or of the channel.",
    );
  else if (isBot && to === undefined && thread !== undefined)
    warn([...at, "thread"], "has no effect without `to`: a thread is in the Slack channel that `to` names.");
  else if (!isBot && (to ?? thread) !== undefined)
    warn(
      [...at, to === undefined ? "thread" : "to"],
      "has no effect: only a channel of the type `slack` with `botToken` has addresses.",
    );
}

type ModelNames = {
  backend: string;
  model?: string | undefined;
  models: readonly string[] | Readonly<Record<string, unknown>>;
};

/** The error in a mapping's model, for this agent. */
export function modelFlaw(
  name: string,
  { backend, model: own, models }: ModelNames,
  model: string | undefined,
): string | undefined {
  const named = Array.isArray(models) ? models : Object.keys(models);
  const known = [...new Set([...(own === undefined ? [] : [own]), ...named])];
  if (model === undefined || ANY_MODEL.includes(backend) || known.includes(model)) return undefined;
  const hint = known.length > 0 ? meantOrListed(known, model) : "it has no `models`.";
  return `names a model that the agent \`${name}\` does not have; ${hint}`;
}

/** Refuses two mappings with one session and different agents, and warns of templates that can give one. */
function checkSessions(rules: readonly Rule[], { gateway, agents }: MappingAround, { refuse, warn }: Findings): void {
  const owners: { agent: string; mapping: string; session: string }[] = [];
  for (const { name, at, written } of rules) {
    const { session } = written;
    if (session === undefined) continue;
    const agent = written.agent ?? gateway.defaultAgent ?? Object.keys(agents)[0] ?? "";
    const others = owners.filter((owner) => owner.agent !== agent);
    const same = others.find((owner) => owner.session === session);
    const near = others.find((owner) => mayMeet(owner.session, session));
    if (same)
      refuse(
        [...at, "session"],
        `is also the session of the mapping ${same.mapping}, which has another agent. Use different sessions, or the same agent.`,
      );
    else if (near)
      warn(
        [...at, "session"],
        `can become a session of the mapping ${near.mapping}, which has another agent, and would then be refused (409): give the two sessions different beginnings.`,
      );
    owners.push({ agent, mapping: name, session });
  }
}

/** True if a body can give both the same session: one is a template, and the other begins with the same text. */
function mayMeet(one: string, other: string): boolean {
  const [start, otherStart] = [startOf(one), startOf(other)];
  return (start !== one && otherStart.startsWith(start)) || (otherStart !== other && start.startsWith(otherStart));
}

/** The text before the first placeholder. */
function startOf(session: string): string {
  return session.split(/(?<!\{)\{(?!\{)/, 1)[0] ?? "";
}

/** Finds mappings that no sender with the shared token can reach, because an earlier mapping matches all their requests. */
function checkReach(rules: readonly Rule[], { webhooks }: CheckedConfig, refuse: Report, warn: Report): void {
  const shared = rules.filter(({ written }) => written.verify === undefined);
  if (webhooks.enabled !== false && webhooks.token === undefined && shared.length < rules.length) {
    for (const { at } of shared) refuse(at, "cannot be reached: set `webhooks.token`, or give it `verify`.", "key");
    return;
  }
  shared.forEach((rule, index) => {
    const before = shared.slice(0, index).find((other) => covers(other, rule));
    if (!before) return;
    const reach = `only ${webhooks.path}/${rule.name} reaches it. To have it tried there, put it first.`;
    warn(
      rule.at,
      `is never tried at ${webhooks.path}: ${before.name}, before it, matches every request that it matches; ${reach}`,
      "key",
    );
  });
}

function covers(wide: Rule, narrow: Rule): boolean {
  return (
    wide.pairs.length === Object.keys(wide.written.match).length &&
    wide.pairs.every((pair) =>
      narrow.pairs.some(
        ({ lookup, texts }) =>
          isBelow(lookup, pair.lookup) &&
          isBelow(pair.lookup, lookup) &&
          texts.every((text) => pair.texts.includes(text)),
      ),
    )
  );
}
