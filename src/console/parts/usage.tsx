import { count } from "../lib/format.ts";

type Used = {
  input: number;
  output: number;
  cached?: number;
  reasoning?: number;
  cost?: number;
  unknown?: true;
};

const money = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** Tokens and what they cost, in one line. */
export function UsageWords({ usage }: { usage: Used }) {
  const { input, output, cached, reasoning, cost, unknown } = usage;
  if (unknown) return <span class="faint">not told by the agent's backend</span>;
  return (
    <span>
      {count(input)} in{cached ? `, of these ${count(cached)} cached` : ""}
      {" · "}
      {count(output)} out{reasoning ? `, of these ${count(reasoning)} for reasoning` : ""}
      {cost !== undefined && <span> · costs {money.format(cost)}</span>}
    </span>
  );
}
