/** The bytes that the turns and events of a caller hold, and the numbers of those that wait. `owner` is the surface and the name of the caller. */
export type ShareCounts = Record<"bytes" | "turns" | "events", number>;
export type ShareRecord = { readonly owner: string } & ShareCounts;

/** The shares of callers. One that holds nothing has no record. */
export interface ShareRecords {
  find(owner: string): Readonly<ShareCounts> | undefined;
  count(owner: string, name: keyof ShareCounts, by: number): void;
  all(): ShareRecord[];
}
