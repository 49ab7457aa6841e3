import { type BudgetBar, barsOf, scopeOf } from "#console/lib/budgets.ts";
import { State } from "#console/parts/state.tsx";
import { Countdown } from "#console/parts/time.tsx";
import type { Budget } from "#generated/clients/typescript/src/rpc-types.ts";

/** The budgets with a bar for each limit. */
export function Budgets({ budgets }: { budgets: readonly Budget[] }) {
  return (
    <section class="section" aria-label="Budgets">
      <h2>Budgets</h2>
      <ul class="budgets">
        {budgets.map((budget) => (
          <BudgetItem key={budget.name} budget={budget} />
        ))}
      </ul>
    </section>
  );
}

function BudgetItem({ budget }: { budget: Budget }) {
  const { name, state, estimatedTokens, resetsAt } = budget;
  const effect = budget.then === "refuse" ? "turns are refused" : "turns wait";
  return (
    <li>
      <div class="line budget-head">
        <strong class="break">{name}</strong>
        {state === "warning" && <State of="degraded" word="nearly spent" />}
        {state === "exceeded" && <State of="failed" word={`spent: ${effect}`} />}
        <span class="muted break">{scopeOf(budget)}</span>
        <span class="muted budget-reset">
          resets <Countdown to={resetsAt} over="now" />
        </span>
      </div>
      {barsOf(budget).map((bar) => (
        <Bar key={bar.unit} bar={bar} name={name} state={state} />
      ))}
      {estimatedTokens > 0 && <p class="hint">{estimatedTokens.toLocaleString("en")} of the tokens are an estimate.</p>}
    </li>
  );
}

function Bar({ bar, name, state }: { bar: BudgetBar; name: string; state: Budget["state"] }) {
  const { unit, words, more, usedPercent, reservedPercent, percent } = bar;
  return (
    <div class="line budget-unit">
      <span
        class="budget-bar"
        data-state={state}
        role="meter"
        aria-label={`${name}, ${unit}`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.min(100, percent)}
        aria-valuetext={`${words}, ${percent} %`}
      >
        <span style={{ width: `${usedPercent}%` }} />
        <span data-of="reserved" style={{ width: `${reservedPercent}%` }} />
      </span>
      <span class="budget-words">
        {words} {more && <span class="faint">{more}</span>}
      </span>
      <span class="budget-percent">{percent} %</span>
    </div>
  );
}
