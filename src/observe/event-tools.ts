import type { Level, Logger } from "#observe/logger.ts";
import type { Registry } from "#observe/metrics.ts";

/** What business events are made of. */
export const createEventTools = ({ logger: { log }, registry }: { logger: Logger; registry: Registry }) => {
  const count = <Label extends string = never>(name: string, help: string, labels: readonly Label[] = []) =>
    registry.counter(`gateway_${name}_total`, help, labels);
  const time = <Label extends string>(name: string, help: string, labels: readonly Label[]) =>
    registry.histogram(`gateway_${name}_seconds`, help, labels);

  /** An event that only counts, by the values of its labels, and writes its line. */
  const event = <Fields extends object, Label extends string & keyof Fields = never>(
    level: Level,
    name: string,
    [metric, help, ...labels]: readonly [metric: string, help: string, ...labels: Label[]],
  ) => {
    const family = count<Label>(metric, help, labels);
    return (fields: Fields): void => {
      family.at(...labels.map((label) => String(fields[label]))).inc();
      log(level, name, fields);
    };
  };

  return { log, count, time, event };
};

export type EventTools = ReturnType<typeof createEventTools>;
