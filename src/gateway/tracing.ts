import type { Config } from "#config/config.ts";
import type { Core } from "#core/core.ts";
import {
  callerTraceOf,
  spanOfAnnouncement,
  spansOfTurn,
  type TracedTurn,
  traceIdOfTurn,
} from "#core/recorder/turn-spans.ts";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import type { Events, TurnFollower } from "#observe/events.ts";
import { createOtlpSink, type SpanSink } from "#outbound/otlp.ts";
import type { Turn } from "#store/store.ts";
import type { TracingSettings } from "./tracing-settings.ts";

type TracingParts = {
  settings: TracingSettings;
  config: () => Config;
  core: Core;
  events: Events;
  clock: Clock;
  version: string;
  /** JSON without the secrets of the configuration. */
  hideInJson: (json: string) => string;
  follow: (follower: TurnFollower) => void;
};

/** Turns whose records are read at once; later ones go without a trace. */
const MOST_READ = 256;
/** The digits of a trace id that decide if it is exported, like the ratio sampler of OpenTelemetry. */
const RATIO_DIGITS = 14;
const RATIO_SPACE = 16 ** RATIO_DIGITS;

/**
 * Exports each turn that ends on this gateway. A trace is a view of the store's data: it is read from the turn, its delivery and their timeline after
 * the end is stored, so that no turn waits for it.
 */
export function startTracing(parts: TracingParts): { close(): Promise<void> } {
  const { settings, core, events, clock, version } = parts;
  const sink: SpanSink = createOtlpSink({
    ...settings,
    clock,
    version,
    hideInJson: parts.hideInJson,
    onDrop: (reason, count, detail) => events.spansDropped({ reason, count, detail }),
  });
  const reading = new Set<Promise<void>>();

  const trace = (turnId: string, tell: (traced: TracedTurn) => Promise<void> | void): void => {
    if (reading.size >= MOST_READ) {
      events.spansDropped({ reason: "queue", count: 1, detail: "too many turns ended at once" });
      return;
    }
    const read = readTurn(core, turnId)
      .then((traced) => (traced && isSampled(traced, settings) ? tell(traced) : undefined))
      .catch((error: unknown) => {
        if (GatewayError.from(error).name === "internal") events.unexpectedError({ error, where: "tracing" });
        else events.storeFailed({ operation: "readTrace", error });
      })
      .finally(() => reading.delete(read));
    reading.add(read);
  };

  parts.follow({
    turnEnded: (turnId) =>
      trace(turnId, async (traced) => {
        const provider = providerOf(parts.config(), traced.turn);
        const message = settings.content ? await messageOf(core, traced.turn) : undefined;
        sink.add(spansOfTurn(traced, { provider, message }));
      }),
    announced: (turnId) =>
      trace(turnId, (traced) => {
        const span = spanOfAnnouncement(traced);
        if (span) sink.add([span]);
      }),
  });
  return {
    async close() {
      await Promise.all(reading);
      await sink.close();
    },
  };
}

async function readTurn(core: Core, turnId: string): Promise<TracedTurn | undefined> {
  const turn = await core.store.getTurn(turnId);
  if (!turn) return undefined;
  const none = { turn, delivery: undefined, timeline: [] };
  if (turn.deliveryId === undefined) return none;
  try {
    return { turn, ...(await core.deliveries.get(turn.deliveryId)) };
  } catch (error) {
    // The recorder may have let it go already.
    if (GatewayError.from(error).name === "delivery-not-found") return none;
    throw error;
  }
}

function isSampled({ turn, delivery }: TracedTurn, { ratio, followsCaller }: TracingSettings): boolean {
  const caller = callerTraceOf(delivery);
  if (caller && followsCaller) return caller.sampled;
  const digits = traceIdOfTurn(turn.turnId, caller).slice(-RATIO_DIGITS);
  return Number.parseInt(digits, 16) / RATIO_SPACE < ratio;
}

/** The type of the provider whose model answered; undefined for other backends. */
function providerOf(config: Config, { agent: name, model }: Turn): string | undefined {
  const agent = config.agents[name];
  if (agent?.backend !== "model") return undefined;
  const table = agent.modelTable;
  const models = Object.values(table);
  const meant = table[model ?? agent.model ?? ""] ?? models.find((one) => one.model === model) ?? models[0];
  return (meant && config.providers[meant.provider]?.type) ?? "unknown";
}

/** The text of the message that a turn answers: the entry right before the turn was queued. */
async function messageOf({ store }: Core, { sessionId, turnId, seq }: Turn): Promise<string | undefined> {
  const [entry] = await store.readEntries(sessionId, { after: seq - 2, limit: 1 });
  return entry?.name === "message.created" && entry.turnId === turnId ? entry.text : undefined;
}
