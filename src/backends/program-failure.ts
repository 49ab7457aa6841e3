import { BackendError } from "#kit/errors.ts";
import { type ProgramEnd, ProgramNotStarted, type RunningProgram } from "#kit/programs/start.ts";

/** The exit code of a program that asks for another try: EX_TEMPFAIL of sysexits.h. */
const TRY_AGAIN = 75;

/** The failure for a program that could not be started, for callers. The searched paths are only logged. */
export function notStarted(error: unknown): BackendError {
  const isShortage = error instanceof ProgramNotStarted && error.isShortage;
  const words = isShortage
    ? "the agent's program cannot be started now: the machine does not have the resources for it"
    : "the agent's program cannot be started";
  return new BackendError(words, { retryable: isShortage, cause: error });
}

/** The failure of a program that has ended. The last line that it wrote goes only to the log. */
export function endedBadly(
  { code, signal }: ProgramEnd,
  program: RunningProgram,
  retryable = code === TRY_AGAIN,
): BackendError {
  const ended = signal === null ? `ended with ${code}` : `was ended by ${signal}`;
  const last = program.lastWords();
  const next = last === undefined ? "it wrote nothing to standard error" : "its standard error is in the gateway's log";
  const words = `the agent's program ${ended}: ${next}`;
  return new BackendError(words, { retryable, ...(last === undefined ? {} : { cause: new Error(last) }) });
}
