import { count } from "../lib/format.ts";
import type { TranscriptTurn } from "../lib/transcript.ts";

type Used = NonNullable<TranscriptTurn["usage"]>;

const money = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** Tokens and what they cost, in one line. */
export function UsageWords({ usage }: { usage: Used }) {
  const { input, output, cached, reasoning, cost, unknown } = usage;
  if (unknown) return <span class="faint">not reported</span>;
  return (
    <span>
      {count(input)} in{cached ? ` (${count(cached)} cached)` : ""}
      {" · "}
      {count(output)} out{reasoning ? ` (${count(reasoning)} reasoning)` : ""}
      {cost !== undefined && <span> · cost {money.format(cost)}</span>}
    </span>
  );
}
