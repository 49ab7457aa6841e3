import type { ScheduleState } from "#store/store.ts";

/** A schedule. `turnId` is the turn of its last run that started one. */
export type ScheduleRecord = Readonly<ScheduleState> & { readonly turnId: string | undefined };

export interface ScheduleRecords {
  find(name: string): ScheduleRecord | undefined;
  put(record: ScheduleRecord): void;
  delete(record: ScheduleRecord): void;
  /** All records, in the order of their names. */
  all(): ScheduleRecord[];
}
