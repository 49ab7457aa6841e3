import { existsSync } from "node:fs";
import type { Channel } from "#channels/channel.ts";
import { createNotifyEndpoint } from "#channels/notify.ts";
import type { Post } from "#channels/post.ts";
import { createSlackBot, createSlackChannel } from "#channels/slack.ts";
import { createWebhookChannel } from "#channels/webhook.ts";
import { checkDraft, type MappingDraft } from "#config/check-draft.ts";
import { type AgentConfig, type ChannelConfig, type Config, coalesceOf, type ScheduleConfig } from "#config/config.ts";
import type { AgentSettings } from "#core/agents/agents.ts";
import { GATEWAY_STORED_ENTRIES } from "#core/gateway-stream.ts";
import { tokenBudgets } from "#core/key-budgets.ts";
import { createMappings, type MappingSettings, type Mappings } from "#core/mappings.ts";
import type { ScheduleSettings } from "#core/schedules/settings.ts";
import type { CoreSettings } from "#core/settings.ts";
import { systemClock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { once } from "#kit/once.ts";
import type { StorePolicy } from "#store/store.ts";
import type { AnsweringFor } from "./agent-backends.ts";
import { budgetPolicyOf } from "./budget-policy.ts";

/** Its code is loaded with the first announcement. */
const loadPost = once(async () => (await import("#channels/post.ts")).createPost({ clock: systemClock }));
const post: Post = async (...args) => await (await loadPost())(...args);

function openChannel(channel: ChannelConfig): Channel {
  if (channel.type === "webhook") return createWebhookChannel(channel, { post, clock: systemClock });
  const { botToken, url, to } = channel;
  // Without a token the address is there: the configuration was checked.
  return botToken === undefined
    ? createSlackChannel({ url: url as string }, { post })
    : createSlackBot({ botToken, url, to }, { post });
}

/** The settings of the core, from the configuration. */
export function coreSettingsOf(config: Config, answering: AnsweringFor): CoreSettings {
  return {
    agents: new Map(
      Object.entries(config.agents).map(([name, agent]) => [
        name,
        { ...agentSettingsOf(name, agent), ...answering(name, agent, config) },
      ]),
    ),
    defaultAgent: config.gateway.defaultAgent,
    keys: config.gateway.rest.auth.keys.map(({ hash, expiresAt, ...key }) => {
      const ends = expiresAt === undefined ? undefined : Date.parse(expiresAt);
      return { ...key, hash: Buffer.from(hash, "hex"), prefix: undefined, expiresAt: ends };
    }),
    /** Looked up each time that skills are read: an optional folder may have been made meanwhile. */
    get skillDirs() {
      return config.skills.dirs.filter(({ path, optional }) => !optional || existsSync(path)).map(({ path }) => path);
    },
    mappings: mappingsOf(config),
    channels: new Map(Object.entries(config.channels).map(([name, channel]) => [name, openChannel(channel)])),
    announceTo: config.gateway.announceTo,
    notify: new Map(
      Object.entries(config.notify).map(([name, endpoint]) => [
        name,
        createNotifyEndpoint(endpoint, { post, clock: systemClock }),
      ]),
    ),
    schedules: new Map(
      Object.entries(config.schedules).map(([name, schedule]) => [name, scheduleSettingsOf(name, schedule)]),
    ),
    policy: policyOf(config),
    concurrency: config.gateway.concurrency,
    limits: {
      store: config.limits,
      recorder: { ...config.recorder, refused: REFUSED_ENTRIES },
      usageModels: config.limits.usageModels,
    },
    retentionMs: config.sessions.retention,
    webhookRetentionMs: config.sessions.webhookRetention,
    eventRetentionMs: config.sessions.eventRetention,
    compactAt: config.sessions.compactAt,
    recordBodies: config.recorder.bodies,
    isToolContentStored: config.recorder.toolContent,
    datedTokens: config.webhooks.token.flatMap(({ name, since }, index) =>
      since === undefined ? [] : [{ index, name, since }],
    ),
  };
}

function policyOf(config: Config): StorePolicy {
  const { budgets, reserves } = budgetPolicyOf(config);
  return {
    budgets: [...budgets, ...tokenBudgets(config.gateway.rpc.auth.tokens)],
    reserves,
    notify: Object.entries(config.notify).map(([name, { events, agents }]) => ({ name, events, agents })),
    notifications: config.limits.notifications,
    streamKeep: GATEWAY_STORED_ENTRIES,
  };
}

function agentSettingsOf(name: string, agent: AgentConfig): AgentSettings {
  return {
    name,
    description: agent.description,
    instructions: agent.instructions || undefined,
    // The first of its models answers unless a caller names another: its usage is counted under its name.
    model: agent.model ?? (agent.backend === "model" ? agent.models[0] : undefined),
    skills: agent.skills,
    concurrency: agent.concurrency,
    deadlineMs: agent.deadline,
    heartbeatMs: agent.heartbeat.every,
    firstByteMs: agent.timeouts.firstByte,
    silenceMs: agent.timeouts.silence,
  };
}

function scheduleSettingsOf(name: string, schedule: ScheduleConfig): ScheduleSettings {
  const { timeZone = "UTC", every, skill, session, missedWithin, ...rest } = schedule;
  return { ...rest, name, timeZone, everyMs: every, skillId: skill, sessionId: session, missedWithinMs: missedWithin };
}

/** The number of stored refusals of unauthenticated callers: enough to recognise their sources. */
const REFUSED_ENTRIES = 1_000;

/** The least that a mapping's message may have, whatever a webhook's body may. */
const LONGEST_MESSAGE = 1024 ** 2;

function mappingsOf({ webhooks, limits, recorder }: Config): Mappings {
  return createMappings({
    mappings: Object.entries(webhooks.mappings).map(([name, { verify, ...mapping }]) => {
      return { ...mapping, name, verify: verify?.type, verifyUrl: verify?.url };
    }),
    path: webhooks.path,
    longestMessage: Math.max(LONGEST_MESSAGE, limits.webhookBody),
    recordBodies: recorder.bodies,
  });
}

/** The settings of a mapping draft. Throws invalid-request with the configuration's error messages. */
export async function draftOf(config: Config, draft: MappingDraft): Promise<MappingSettings> {
  const faults = await checkDraft(config, draft);
  if (faults.length > 0) {
    const errors = faults.map(({ path, message }) => ({ pointer: pointerTo(path), message }));
    throw new GatewayError("invalid-request", faults.map(({ sentence }) => sentence).join(" "), { errors });
  }
  const { match, agent = config.gateway.defaultAgent, delivery = "none", coalesce, ...rest } = draft;
  const texts = Object.entries(match).map(([path, wanted]) => [path, [wanted].flat().map(String)] as const);
  const { name, message, session, model, channel, to, thread } = rest;
  const parts = {
    name,
    match: Object.fromEntries(texts),
    message,
    agent,
    session,
    model,
    channel,
    delivery,
    to,
    thread,
  };
  return { ...parts, coalesce: coalesce && coalesceOf(coalesce), verify: undefined };
}

/** A place in the request's `mapping`, as a JSON pointer. */
function pointerTo(path: readonly (string | number)[]): string {
  return ["", "mapping", ...path].map((step) => String(step).replaceAll("~", "~0").replaceAll("/", "~1")).join("/");
}
