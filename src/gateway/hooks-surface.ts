import type { Config } from "#config/config.ts";
import type { Core } from "#core/core.ts";
import { hooksHandlers } from "#handlers/hooks/table.ts";
import type { HooksUse } from "#handlers/rest/mappings.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { GuessGuard } from "#wire/call/auth.ts";
import { rateLimitOf } from "#wire/call/rate-limit.ts";
import type { Refusals } from "#wire/call/refusals.ts";
import { createHooksDoor } from "#wire/hooks/hooks.ts";
import { type HooksAccess, mappingRateKey, tokenRateKey } from "#wire/hooks/hooks-access.ts";
import { createHookCalls } from "#wire/hooks/hooks-call.ts";

type HooksSurfaceParts = {
  core: Core;
  config: () => Config;
  /** The senders that the configuration allows now. */
  access: () => HooksAccess;
  guard: GuessGuard;
  refusals: Pick<Refusals, "admits">;
  clock: Clock;
  events: Events;
};

/** The webhooks: their handlers, their door, and the way in for what the flight recorder sends again. */
export const createHooksSurface = ({ core, config, access, guard, refusals, clock, events }: HooksSurfaceParts) => {
  const limit = () => config().webhooks.rateLimit;
  const rates = rateLimitOf(core.store, "hooks", clock, limit);
  const { record } = core.deliveries;
  const { run, call } = createHookCalls({ handlers: hooksHandlers(core), record });
  // Another path needs a restart.
  const { path } = config().webhooks;
  const door = createHooksDoor({
    path,
    access,
    run,
    guard,
    rateLimit: rates.count,
    limit,
    bodyLimit: () => config().limits.webhookBody,
    recordBodies: () => config().recorder.bodies,
    record,
    refusals,
    events,
    clock,
  });
  const use = async (): Promise<HooksUse> => {
    const { token: tokens, mappings } = config().webhooks;
    const signed = Object.keys(mappings).filter((name) => mappings[name]?.verify);
    const uses = await rates.read([...tokens.map(({ hash }) => tokenRateKey(hash)), ...signed.map(mappingRateKey)]);
    return {
      tokens: tokens.map(({ name, since }, index) => ({ name, since, rate: uses[index] })),
      mappings: new Map(signed.map((name, index) => [name, uses[tokens.length + index]])),
    };
  };
  return { door, call, use };
};
