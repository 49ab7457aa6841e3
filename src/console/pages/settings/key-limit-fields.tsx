import { type Signal, useSignal } from "@preact/signals";
import { rpc } from "#console/app/api.ts";
import { budgetOf, PERIODS, type Period, rateOf, WINDOWS, type WindowMs } from "#console/lib/key-limits.ts";
import { Select } from "#console/parts/fields.tsx";
import { Pending } from "#console/parts/page.tsx";
import { Segmented } from "#console/parts/segmented.tsx";
import { useLoaded } from "#console/parts/use.ts";

const CHOICES = [
  ["all", "All agents"],
  ["some", "Selected agents"],
] as const;

/** The limits that the form has, and the reason why it cannot be sent. */
export function useKeyLimits(isAdmin: boolean) {
  const which = useSignal<(typeof CHOICES)[number][0]>("all");
  const agents = useSignal<readonly string[]>([]);
  const limit = useSignal("");
  const windowMs = useSignal<WindowMs>("60000");
  const rate = rateOf(limit.value, windowMs.value);
  const tokens = useSignal("");
  const cost = useSignal("");
  const per = useSignal<Period>("day");
  const budget = budgetOf(tokens.value, cost.value, per.value);
  const isLimited = !isAdmin && which.value === "some";
  const isEmpty = isLimited && agents.value.length === 0;
  return {
    which,
    agents,
    limit,
    windowMs,
    tokens,
    cost,
    per,
    body: {
      ...(isLimited && { agents: [...agents.value] }),
      ...(rate && { rate_limit: rate }),
      ...(budget && { budget }),
    },
    why: isEmpty
      ? "Select an agent first."
      : rate === null
        ? "Enter a whole number of requests, at most 1,000,000."
        : budget === null
          ? "Enter a whole number of tokens, or a cost above 0."
          : undefined,
  };
}

type Limits = ReturnType<typeof useKeyLimits>;

/** The agents that a key may use. A key of scope admin reaches all of them. */
export function AgentsField({ which, agents, isAdmin }: Pick<Limits, "which" | "agents"> & { isAdmin: boolean }) {
  const why = isAdmin ? "Only for the scope Chat: an admin key reaches every agent." : undefined;
  return (
    <fieldset>
      <legend class="field-name">Agents</legend>
      <Segmented
        label="Agents"
        chosen={isAdmin ? "all" : which.value}
        choose={(next) => (which.value = next)}
        choices={CHOICES.map(([value, word]) => [value, word, value === "some" ? why : undefined] as const)}
      />
      {why && <span class="hint">{why}</span>}
      {!isAdmin && which.value === "some" && <AgentChoices agents={agents} />}
    </fieldset>
  );
}

function AgentChoices({ agents }: { agents: Signal<readonly string[]> }) {
  const loaded = useLoaded(async (signal) => (await rpc().agent.list({}, { signal })).agents);
  const toggle = (name: string, isChosen: boolean) => {
    agents.value = isChosen ? [...agents.value, name] : agents.value.filter((one) => one !== name);
  };
  return (
    <>
      <Pending of={loaded} rows={2} />
      <div class="agent-choices">
        {loaded.value.value?.map(({ agentName, description }) => (
          <label key={agentName} class="choice">
            <input
              type="checkbox"
              checked={agents.value.includes(agentName)}
              onChange={({ currentTarget }) => toggle(agentName, currentTarget.checked)}
            />
            <span class="break">
              {agentName} {description && <span class="hint">{description}</span>}
            </span>
          </label>
        ))}
      </div>
    </>
  );
}

/** The own rate limit of a key. Without a number, that of REST holds. */
export function RateField({ limit, windowMs }: Pick<Limits, "limit" | "windowMs">) {
  return (
    <fieldset>
      <legend class="field-name">Rate limit</legend>
      <div class="line rate">
        <input
          type="text"
          inputMode="numeric"
          maxLength={7}
          placeholder="default"
          aria-label="Requests"
          value={limit.value}
          onInput={({ currentTarget }) => (limit.value = currentTarget.value)}
        />
        <label class="line">
          requests per
          <Select value={windowMs.value} choices={WINDOWS} choose={(next) => (windowMs.value = next)} />
        </label>
      </div>
      <span class="hint">Without a number, gateway.rest.rateLimit applies.</span>
    </fieldset>
  );
}

/** The own budget of a key. Without numbers, it has none. */
export function BudgetField({ tokens, cost, per }: Pick<Limits, "tokens" | "cost" | "per">) {
  return (
    <fieldset>
      <legend class="field-name">Budget</legend>
      <div class="line rate">
        <input
          type="text"
          inputMode="numeric"
          maxLength={13}
          placeholder="tokens"
          aria-label="Tokens"
          value={tokens.value}
          onInput={({ currentTarget }) => (tokens.value = currentTarget.value)}
        />
        <input
          type="text"
          inputMode="decimal"
          maxLength={13}
          placeholder="cost"
          aria-label="Cost"
          value={cost.value}
          onInput={({ currentTarget }) => (cost.value = currentTarget.value)}
        />
        <label class="line">
          per
          <Select value={per.value} choices={PERIODS} choose={(next) => (per.value = next)} />
        </label>
      </div>
      <span class="hint">
        At the limit, the key's turns are refused until the next {per.value}. Leave both fields empty for no budget.
      </span>
    </fieldset>
  );
}
