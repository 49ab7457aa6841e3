import { createEchoBackend } from "#backends/echo.ts";
import { announceOf } from "#core/outbox/announcements.ts";
import type { DeliveryStep } from "#store/store.ts";
import { createPlayedChannel, type PlayedChannel } from "#test/channels/played.ts";
import { deliveryOf } from "#test/stores/world.ts";
import { type CoreOptions, startCore } from "./start-core.ts";

/** A step of the timeline with its parsed detail. */
type Told = Omit<DeliveryStep, "detail"> & { detail: Record<string, unknown> };

/** The core with channels that a test controls. Turns are answered at once, and by default announced to `ops`. */
export async function startAnnouncing(
  channels: Record<string, PlayedChannel> = { ops: createPlayedChannel() },
  options: CoreOptions & { announceTo?: string } = {},
) {
  const settings = { channels: channelsOf(channels), announceTo: options.announceTo };
  const backend = options.backend ?? createEchoBackend();
  const core = await startCore({ ...options, backend, settings: { ...settings, ...options.settings } });
  let turns = 0;

  /** Starts an announced turn; returns its id and that of its delivery. */
  const announce = async ({ channel = "ops", hops = 0, session = "webhook:a", text = "hello" } = {}) => {
    const delivery = deliveryOf(`dlv_${String(++turns).padStart(4, "0")}`);
    const announced = announceOf(core.settings(), { delivery: "announce", channel, hops });
    const { turnId } = await core.start({ surface: "hooks", session, text, announce: announced, delivery });
    await core.clock.settle();
    return { turnId, deliveryId: delivery.deliveryId };
  };

  /** The part of the timeline about an announcement. */
  const told = async ({ deliveryId }: { deliveryId: string }): Promise<Told[]> => {
    const steps = (await core.store.getDelivery(deliveryId))?.steps ?? [];
    return steps.map((step) => ({ ...step, detail: JSON.parse(step.detail ?? "{}") as Record<string, unknown> }));
  };

  return {
    ...core,
    announce,
    told,
    /** The steps, each in one word. */
    namesOf: async (of: { deliveryId: string }) =>
      (await told(of)).map(({ name }) => name.replace("announcement.", "")),
    healthOf: async (channel: string) => {
      await core.clock.advance(1_000);
      return (await core.core.health.read()).parts.find(({ name }) => name === `channels.${channel}`);
    },
    /** Reloads with a configuration with these channels. */
    reconfigure: (next: Record<string, PlayedChannel>) =>
      core.core.reconfigure({ ...core.settingsWith([{ name: "main", backend }]), channels: channelsOf(next) }),
  };
}

function channelsOf(channels: Record<string, PlayedChannel>) {
  return new Map(Object.entries(channels).map(([name, { channel }]) => [name, channel]));
}
