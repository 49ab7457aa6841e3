import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { Mapping, Trial } from "#core/mappings.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";

type Tried = RestReplies["mappings.dryRun"]["mappings"][number];

export const mappings = (core: Core): Pick<RestHandlers<CallContext>, "mappings.dryRun"> => ({
  "mappings.dryRun": async ({ body: { name, headers, body } }) => {
    const sent = Object.fromEntries(Object.entries(headers).map(([key, value]) => [key.toLowerCase(), value]));
    const trials = core.mappings.tryAll({ headers: sent, body }, name);
    // By its own path a mapping is reached with its signature; by the path of all, only those without.
    const takes = trials.find((trial) => "message" in trial && (name !== undefined || !trial.mapping.verify));
    return { starts: takes?.mapping.name ?? null, mappings: trials.map((trial) => triedOf(core, trial)) };
  },
});

const triedOf = (core: Core, trial: Trial): Tried => {
  const { mapping } = trial;
  const where = {
    mapping: mapping.name,
    path: `${core.mappings.path()}/${mapping.name}`,
    verify: mapping.verify ?? null,
  };
  if ("message" in trial)
    return { ...where, matched: true, failed: null, message: trial.message, turn: plannedOf(core, mapping) };
  const { path, expected, found } = trial.miss;
  return { ...where, matched: false, failed: { path, expected: [...expected], found }, message: null, turn: null };
};

const plannedOf = (core: Core, { agent, session, model, channel, delivery }: Mapping): Tried["turn"] => ({
  agent,
  session_id: session ?? null,
  model: model ?? core.agents.find(agent)?.model ?? null,
  channel: channel ?? null,
  delivery,
  announce_to: core.announce({ delivery, channel, hops: 0 })?.channel ?? null,
});
