import { BackendError } from "#kit/errors.ts";
import { type ProgramEnd, ProgramNotStarted, type RunningProgram } from "#kit/programs/start.ts";

/** What a program exits with that asks for another try: EX_TEMPFAIL of sysexits.h. */
const TRY_AGAIN = 75;

/** A program that could not be started, in words for callers; where it was looked for is told to the log alone. */
export const notStarted = (error: unknown): BackendError => {
  const isShortage = error instanceof ProgramNotStarted && error.isShortage;
  const words = isShortage
    ? "the agent's program cannot be started now: the machine has no room for it"
    : "the agent's program cannot be started";
  return new BackendError(words, { retryable: isShortage, cause: error });
};

/** How a program ended, as a failure; what it said last goes to the log alone. */
export const endedBadly = (
  { code, signal }: ProgramEnd,
  program: RunningProgram,
  retryable = code === TRY_AGAIN,
): BackendError => {
  const words =
    signal === null ? `the agent's program ended with ${code}` : `the agent's program was ended by ${signal}`;
  const last = program.lastWords();
  return new BackendError(words, { retryable, ...(last === undefined ? {} : { cause: new Error(last) }) });
};
