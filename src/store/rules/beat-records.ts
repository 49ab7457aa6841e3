export type BeatRecord = {
  readonly agent: string;
  /** The monotonic time at which the next beat is due; undefined if none is planned. */
  readonly dueAt: number | undefined;
  /** The same by the wall clock at the time of planning; while a beat runs, the time at which that beat was due. */
  readonly nextAt: number | undefined;
  /** An event requested a beat at once, and none has started since. Version 0.2.0 stores the field under this name. */
  readonly isAsked: boolean;
  /** The running beat: one or more successive turns. */
  readonly run: BeatRun | undefined;
  /** The end of the window of the budget that delayed the last beat. */
  readonly delayedUntil?: number | undefined;
};

export type BeatRun = {
  /** The monotonic time at which the beat began. */
  readonly began: number;
  /** The beat takes events with `after` < ordinal <= `through`. */
  readonly through: number;
  /** The open turn works on all queued events of the agent with `before` < ordinal <= `after`. The events are not written until the turn ends. */
  readonly before: number;
  readonly after: number;
  /** The number of events in the turns of the beat, and how many of them were returned to the queue. */
  readonly events: number;
  readonly returned: number;
  readonly turnIds: readonly string[];
  /** The unfinished turn of the beat. If undefined, the beat can continue. */
  readonly openTurnId: string | undefined;
  /** The dead events of the last turn. */
  readonly dead: readonly string[];
  /** True if the agent was removed: the beat ends with its current turn. */
  readonly isLast: boolean;
};
