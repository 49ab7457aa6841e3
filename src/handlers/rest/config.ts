import type { CallContext } from "#core/call.ts";
import { type ConfigReload, nameOf } from "#core/reload.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import { timeOf } from "./present.ts";

type Shown = RestReplies["config.get"];
type Last = NonNullable<Shown["last_reload"]>;

/** The configuration in force, and its last reload. */
export type ConfigState = {
  file: string | null;
  loadedAt: number;
  values: readonly (Omit<Shown["values"][number], "value"> & { value: unknown })[];
  lastReload: (ConfigReload & { at: number; cause: Last["cause"] }) | undefined;
};

export type ConfigParts = { configState: () => ConfigState };

export function config({ configState }: ConfigParts): Pick<RestHandlers<CallContext>, "config.get"> {
  return {
    "config.get": async () => {
      const { file, loadedAt, values, lastReload } = configState();
      return {
        file: nameOf(file),
        loaded_at: timeOf(loadedAt),
        values: values as Shown["values"],
        last_reload: lastReload ? lastReloadOf(lastReload) : null,
      };
    },
  };
}

function lastReloadOf({ needsRestart, ...last }: NonNullable<ConfigState["lastReload"]>): Last {
  return {
    ...last,
    at: timeOf(last.at),
    changed: [...last.changed],
    needs_restart: [...needsRestart],
    problems: last.problems.map((problem) => ({ ...problem, file: nameOf(problem.file) })),
  };
}
