import { pretty } from "../lib/format.ts";
import type { CalledTool } from "../lib/waterfall.ts";
import { State } from "./state.tsx";

/** The arguments of a tool call and its result, or the reason of its failure. */
export function ToolContent({ ok, reason, arguments: args, result }: CalledTool) {
  if (args === undefined && result === undefined && !reason)
    return <p class="faint">The arguments and the result are not stored.</p>;
  return (
    <dl class="stack tool-content">
      {(
        [
          ["Arguments", args],
          ["Result", result],
          ["Error", ok ? undefined : reason],
        ] as const
      ).map(
        ([name, text]) =>
          text !== undefined && (
            <div key={name} data-tone={name === "Error" ? "failed" : undefined}>
              <dt>{name}</dt>
              <dd>
                <pre class="raw step-text" tabIndex={0}>
                  {pretty(text)}
                </pre>
              </dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** The outcome of a tool call as a state. */
export function ToolState({ ok }: Pick<CalledTool, "ok">) {
  return <State of={ok ? "ok" : "failed"} />;
}
