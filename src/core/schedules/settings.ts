/** A schedule as the configuration describes it. It has `cron` or `everyMs`, and `message` or `skillId`. */
export type ScheduleSettings = {
  name: string;
  cron: string | undefined;
  everyMs: number | undefined;
  /** The zone of `cron`. */
  timeZone: string;
  agent: string;
  message: string | undefined;
  skillId: string | undefined;
  params: Readonly<Record<string, unknown>> | undefined;
  /** Undefined is a new session for each run. */
  sessionId: string | undefined;
  model: string | undefined;
  channel: string | undefined;
  delivery: "none" | "announce";
  /** `once`: one run for planned times that passed while no gateway ran, if the last is not older than `missedWithinMs`. */
  missed: "skip" | "once";
  missedWithinMs: number;
  overlap: "skip" | "queue";
};
