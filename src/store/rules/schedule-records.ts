import type { ScheduleState } from "#store/store.ts";

/** A schedule. `turnId` is the turn of its last run that started one. */
export type ScheduleRecord = Readonly<ScheduleState> & { readonly turnId: string | undefined };
