import type { Frame } from "./frame.ts";

/** The target of pushes: the part of a connection that its subscriptions use. */
export type PushSink = {
  readonly isOpen: boolean;
  /** True if too many bytes are unsent: entries must then be read from the store later. */
  readonly isFull: boolean;
  /** True if entries that waited in the store can be sent. */
  readonly hasRoom: boolean;
  push(frame: Frame): void;
  /** Called if a push was held back: the subscriber is then notified when there is room again. */
  hold(): void;
  /** Closes the connection, because it has no room for a push that cannot wait. */
  cut(): void;
};

/** The call that started a turn. Its pushes are sent after its answer. */
export type PendingCall = { pushAfterAnswer(frame: Frame): void };
