import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { AddressFault, Lack, PlaceField } from "#core/mapping-places.ts";
import {
  type Coalesce,
  compileMapping,
  type Mapping,
  type MappingSettings,
  matchOf,
  type Trial,
} from "#core/mappings.ts";
import { type Backtested, backtest } from "#core/recorder/backtest.ts";
import { daysSince, OLD_DAYS } from "#core/token-ages.ts";
import type { PlannedWebhook } from "#core/webhook-turns.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import type { MappingDraft } from "#generated/rest-types.ts";
import { excerptOf, type MappedRequest } from "#kit/mapping-paths.ts";
import type { OpenGroup } from "#store/store.ts";
import { timeOf, timeOrNull } from "./present.ts";

type Configured = RestReplies["mappings.list"]["mappings"][number];
type Token = RestReplies["mappings.list"]["tokens"][number];
type Tried = RestReplies["mappings.dryRun"]["mappings"][number];

type Rate = { maxRequests: number; windowMs: number; left: number; wholeInMs: number | undefined } | undefined;
/** The shared tokens of webhooks, and the use of the rate limits of each token and of each signed mapping. */
export type HooksUse = {
  tokens: readonly { name: string; since: string | undefined; rate: Rate }[];
  mappings: ReadonlyMap<string, Rate>;
};
export type MappingParts = {
  hooksUse: () => Promise<HooksUse>;
  /** A draft as the configuration in force would have it. Throws invalid-request with the sentences of the configuration. */
  readDraft: (draft: MappingDraft) => Promise<MappingSettings>;
};

type Bodies = Pick<RestHandlers<CallContext>, "mappings.list" | "mappings.dryRun" | "mappings.backtest">;

export function mappings(core: Core, { hooksUse, readDraft }: MappingParts): Bodies {
  return {
    "mappings.list": async () => {
      const use = await hooksUse();
      const now = core.clock.now();
      return {
        mappings: core
          .settings()
          .mappings.list()
          .map((mapping) => configuredOf(core, mapping, use, now)),
        tokens: use.tokens.map((token) => tokenOf(token, now)),
        next_cursor: null,
      };
    },
    "mappings.dryRun": async ({ body: { name, mapping, headers, body } }) => {
      const sent = Object.fromEntries(Object.entries(headers).map(([key, value]) => [key.toLowerCase(), value]));
      const only = mapping ? compileMapping(await readDraft(mapping)) : name;
      const request = { headers: sent, body };
      const { starts, trials } = core.settings().mappings.dryRun(request, only);
      const tried = trials.map((trial) => triedOf(core, trial, request));
      return { starts: starts?.name ?? null, mappings: await Promise.all(tried) };
    },
    "mappings.backtest": async ({ body: { mapping, limit } }, { signal }) => {
      const draft = compileMapping(await readDraft(mapping));
      const { tried, skipped } = await backtest(core, draft, { limit, signal });
      const deliveries = tried.map(backtestedOf);
      return { tried: tried.length, matched: deliveries.filter(({ matched }) => matched).length, skipped, deliveries };
    },
  };
}

function configuredOf(core: Core, mapping: Mapping, use: HooksUse, now: number): Configured {
  return {
    name: mapping.name,
    path: pathOf(core, mapping),
    match: matchOf(mapping),
    message: mapping.message,
    ...targetOf(core, mapping),
    session: mapping.session ?? null,
    model: mapping.model ?? null,
    to: mapping.to ?? null,
    thread: mapping.thread ?? null,
    coalesce: mapping.coalesce ? { key: mapping.coalesce.key, ...waitOf(mapping.coalesce) } : null,
    verify: mapping.verify ?? null,
    verify_url: mapping.verifyUrl ?? null,
    rate_limit: rateLimitOf(use.mappings.get(mapping.name), now),
  };
}

function tokenOf({ name, since, rate }: HooksUse["tokens"][number], now: number): Token {
  return {
    name,
    since: since ?? null,
    age_days: (since === undefined ? undefined : daysSince(since, now)) ?? null,
    max_age_days: OLD_DAYS,
    rate_limit: rateLimitOf(rate, now),
  };
}

function rateLimitOf(rate: Rate, now: number): Configured["rate_limit"] {
  return rate
    ? {
        limit: rate.maxRequests,
        window_ms: rate.windowMs,
        remaining: rate.left,
        resets_at: timeOrNull(rate.wholeInMs === undefined ? undefined : now + rate.wholeInMs),
      }
    : null;
}

function pathOf(core: Core, { name }: Mapping): string {
  return `${core.settings().mappings.path}/${name}`;
}

function waitOf({ windowMs, maxWaitMs, take }: Omit<Coalesce, "key">) {
  return { window_ms: windowMs, max_wait_ms: maxWaitMs, take };
}

/** The agent that a mapping starts, and the channel of the reply. */
function targetOf(core: Core, mapping: Mapping) {
  const { agent, delivery, channel = null } = mapping;
  return { agent, delivery, channel, announce_to: core.webhookTurns.targetOf(mapping).announceTo ?? null };
}

async function triedOf(core: Core, trial: Trial, request: MappedRequest): Promise<Tried> {
  const { mapping } = trial;
  const where = { mapping: mapping.name, path: pathOf(core, mapping), verify: mapping.verify ?? null };
  if ("message" in trial) {
    const turn = plannedOf(core, mapping, await core.webhookTurns.plan(mapping, request));
    return { ...where, matched: true, failed: null, message: trial.message, turn };
  }
  const { path, expected, found } = trial.miss;
  return { ...where, matched: false, failed: { path, expected: [...expected], found }, message: null, turn: null };
}

function backtestedOf({ delivery, message, session, key, miss }: Backtested) {
  const { deliveryId, at, path, caller } = delivery;
  const failed = miss ? { ...miss, expected: [...miss.expected] } : null;
  const request = { delivery_id: deliveryId, at: timeOf(at), path, caller: caller || null };
  const rendered = { message: message ?? null, session_id: session ?? null, group_key: key ?? null };
  return { ...request, matched: !miss, failed, ...rendered };
}

function plannedOf(core: Core, mapping: Mapping, planned: PlannedWebhook): NonNullable<Tried["turn"]> {
  const { session, to, thread, model, key, group, joins, lacks } = planned;
  const target = targetOf(core, mapping);
  // Another channel does not get the address.
  const isAddressed = target.announce_to === target.channel;
  return {
    ...target,
    session_id: session ?? null,
    model: model ?? null,
    to: (isAddressed ? to : undefined) ?? null,
    thread: (isAddressed ? thread : undefined) ?? null,
    coalesce: group ? { key: excerptOf(key) ?? "", ...waitOf(group), joins: joins ? joinedOf(joins) : null } : null,
    notes: lacks.map(noteOf),
  };
}

function joinedOf({ turnId, requests, closesAt }: OpenGroup) {
  return { turn_id: turnId, requests, closes_at: timeOf(closesAt) };
}

const WITHOUT: Readonly<Record<PlaceField, string>> = {
  session: "so the turn gets a new session",
  "coalesce.key": "so the request is not merged with others, and its turn starts at once",
  to: "so the reply goes to the channel's own address",
  thread: "so the reply is not in a thread",
};
const FAULTS: Readonly<Record<AddressFault, string>> = {
  "too-long": "has more than 256 characters",
  "control-characters": "contains control characters",
  secret: "contains a secret of the configuration",
};

/** What a template lacks, and what follows. */
function noteOf({ field, without, reason }: Lack): string {
  if (reason !== undefined) return `\`${field}\` ${FAULTS[reason]}, ${WITHOUT[field]}.`;
  const verb = without.length === 1 ? "has no value" : "have no value";
  return `\`${field}\`: ${without.map((written) => `{${written}}`).join(" and ")} ${verb}, ${WITHOUT[field]}.`;
}
