import type { InBackground } from "#kit/background.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { Store } from "#store/store.ts";
import type { Agents } from "./agents/agents.ts";
import type { CountedModels } from "./agents/counted-models.ts";
import type { SessionStreams } from "./sessions/session-streams.ts";
import type { CoreSettings } from "./settings.ts";
import type { Skills } from "./skills/skills.ts";
import type { LiveReplies } from "./turns/live-replies.ts";

/** The parts that all nouns of the core share; each takes those that it needs. */
export type CoreParts = {
  /** This process, among those that share the store. */
  node: string;
  store: Store;
  clock: Clock;
  events: Events;
  /** The settings in force. */
  settings: () => CoreSettings;
  /** Throws when the gateway takes no new work: it drains, or memory is short. */
  admit: () => void;
  agents: Agents;
  countedModels: CountedModels;
  skills: Skills;
  streams: SessionStreams;
  live: LiveReplies;
  inBackground: InBackground;
  /** A text without the secrets of the configuration. */
  hide: (text: string) => string;
};
