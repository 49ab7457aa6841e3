import type { CallContext } from "#core/call.ts";
import { nameOf } from "#core/reload.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import { timeOf } from "./present.ts";

type Shown = RestReplies["config.get"];
type Last = NonNullable<Shown["last_reload"]>;
type Problem = Omit<Last["problems"][number], "file"> & { file: string | null };

/** The configuration in force, and the last time that it was read again. */
export type ConfigState = {
  file: string | null;
  loadedAt: number;
  values: readonly (Omit<Shown["values"][number], "value"> & { value: unknown })[];
  lastReload:
    | {
        at: number;
        cause: Last["cause"];
        reloaded: boolean;
        changed: readonly string[];
        needsRestart: readonly string[];
        problems: readonly Problem[];
      }
    | undefined;
};

export type ConfigParts = { configState: () => ConfigState };

export const config = ({ configState }: ConfigParts): Pick<RestHandlers<CallContext>, "config.get"> => ({
  "config.get": async () => {
    const { file, loadedAt, values, lastReload } = configState();
    return {
      file: nameOf(file),
      loaded_at: timeOf(loadedAt),
      values: values as Shown["values"],
      last_reload: lastReload ? lastReloadOf(lastReload) : null,
    };
  },
});

const lastReloadOf = ({
  at,
  needsRestart,
  changed,
  problems,
  ...rest
}: NonNullable<ConfigState["lastReload"]>): Last => ({
  at: timeOf(at),
  ...rest,
  changed: [...changed],
  needs_restart: [...needsRestart],
  problems: problems.map((problem) => ({ ...problem, file: nameOf(problem.file) })),
});
