/** Turns with open groups are behind all others of their session. */
export const BEHIND_ALL = 2 ** 52;

/** A group of webhooks that become one turn, while it is open. Its turn is `due` when it closes. */
export type GroupRecord = {
  readonly key: string;
  /** The monotonic time of its first request. */
  readonly began: number;
  readonly requests: number;
  /** The message so far. */
  readonly text: string;
  readonly outside: boolean;
  readonly context: string | undefined;
};

/** The bytes of the texts of a group, which no journal has yet. */
export function bytesOfGroup({ key, text, context = "" }: GroupRecord): number {
  return Buffer.byteLength(key) + Buffer.byteLength(text) + Buffer.byteLength(context);
}
