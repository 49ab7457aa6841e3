import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { compileMapping, type Mapping, type MappingSettings, matchOf, type Trial } from "#core/mappings.ts";
import { type Backtested, backtest } from "#core/recorder/backtest.ts";
import { daysSince, OLD_DAYS } from "#core/token-ages.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import type { MappingDraft } from "#generated/rest-types.ts";
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
      const { starts, trials } = core.settings().mappings.dryRun({ headers: sent, body }, only);
      return { starts: starts?.name ?? null, mappings: trials.map((trial) => triedOf(core, trial)) };
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
    verify: mapping.verify ?? null,
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

/** The agent that a mapping starts, and the channel of the reply. */
function targetOf(core: Core, mapping: Mapping) {
  const { agent, delivery, channel = null } = mapping;
  return { agent, delivery, channel, announce_to: core.webhookTurns.plan(mapping).announceTo ?? null };
}

function triedOf(core: Core, trial: Trial): Tried {
  const { mapping } = trial;
  const where = { mapping: mapping.name, path: pathOf(core, mapping), verify: mapping.verify ?? null };
  if ("message" in trial)
    return { ...where, matched: true, failed: null, message: trial.message, turn: plannedOf(core, mapping) };
  const { path, expected, found } = trial.miss;
  return { ...where, matched: false, failed: { path, expected: [...expected], found }, message: null, turn: null };
}

function backtestedOf({ delivery: { deliveryId, at, path, caller }, message, miss }: Backtested) {
  const failed = miss ? { ...miss, expected: [...miss.expected] } : null;
  const request = { delivery_id: deliveryId, at: timeOf(at), path, caller: caller || null };
  return { ...request, matched: !miss, failed, message: message ?? null };
}

function plannedOf(core: Core, mapping: Mapping): Tried["turn"] {
  return {
    ...targetOf(core, mapping),
    session_id: mapping.session ?? null,
    model: core.webhookTurns.plan(mapping).model ?? null,
  };
}
