import type { Channel, NotifyEndpoint } from "#channels/channel.ts";
import type { EventOrder, RecorderLimits, StoreLimits, StorePolicy } from "#store/store.ts";
import type { AgentTable } from "./agents/agents.ts";
import type { ConfiguredKey } from "./keys.ts";
import type { Mappings } from "./mappings.ts";
import type { ScheduleSettings } from "./schedules/settings.ts";
import type { DatedToken } from "./token-ages.ts";

/** The parts of the configuration that the core uses; a reload gives new ones. */
export type CoreSettings = AgentTable & {
  keys: readonly ConfiguredKey[];
  skillDirs: readonly string[];
  mappings: Mappings;
  /** Where announcements can go, and where those go that name no channel. */
  channels: ReadonlyMap<string, Channel>;
  announceTo: string | undefined;
  /** The endpoints of notifications. Their events are in `policy.notify`. */
  notify: ReadonlyMap<string, NotifyEndpoint>;
  /** By name, in the configuration's order. */
  schedules: ReadonlyMap<string, ScheduleSettings>;
  concurrency: number;
  /** The parts for the rules of the store. */
  policy: StorePolicy;
  limits: {
    store: StoreLimits & EventOrder["limits"];
    recorder: RecorderLimits;
    /** The models of an agent that usage is counted by, besides those that its configuration lists. */
    usageModels: number;
  };
  retentionMs: number;
  webhookRetentionMs: number;
  eventRetentionMs: number;
  /** The number of tokens above which a session is compacted automatically; 0 is never. */
  compactAt: number;
  /** Whether the recorder shows the texts of messages and replies. */
  recordBodies: boolean;
  /** Whether arguments and results of tool calls are stored. */
  isToolContentStored: boolean;
  /** Since which day each webhook token is in use, where the configuration says so. */
  datedTokens: readonly DatedToken[];
};
