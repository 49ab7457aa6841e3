import type { CrashReport } from "./run.ts";

/** The counts of a run, as people read them. */
export const reportOf = ({ counts, kills, idle, seconds, ...report }: CrashReport): string =>
  [
    `  ${kills > 0 ? `killed ${kills} times, ${idle} of them with nothing answered since the time before, in ` : ""}${seconds.toFixed(0)} s; ${counts.acknowledged} orders acknowledged, ${counts.repeated} repeats of keys,`,
    `  ${counts.refused} refused, ${counts.unavailable} times 503, ${counts.unknown} without an answer, ${counts.unreachable} times nobody there`,
    `  ${report.turns} turns, of which ${report.again} ran again and ${report.lost} were given up; ${report.events} events`,
    `  ${report.sessions} sessions, ${report.entries} entries of streams`,
    `  ${report.looks} looks at what had been acknowledged, ${report.pushed} pushes to one who went on elsewhere ${report.resumed} times`,
    `  all that was acknowledged was done ${(report.resumedMs / 1_000).toFixed(1)} s after the last start`,
  ].join("\n");
