import { useSignal } from "@preact/signals";
import { duration } from "../lib/format.ts";
import { phasesOf, type Step, stepWords } from "../lib/steps.ts";
import { RawJson } from "./json.tsx";
import { ClockTime, Running } from "./time.tsx";

/** Steps further apart than this many times all the rest are drawn with a gap. */
const IDLE = 5;

/** A bar of phases on top, the steps in words below, in order. `isOpen`: it still goes on. */
export function Timeline({ steps, isOpen }: { steps: readonly Step[]; isOpen: boolean }) {
  const first = steps[0];
  if (!first) return <p class="faint">Nothing was recorded of it.</p>;
  const began = new Date(first.at).getTime();
  return (
    <div class="timeline">
      <PhaseBar steps={steps} />
      <ol>
        {steps.map((step, n) => (
          <StepLine
            key={`${step.name} ${n}`}
            step={step}
            began={began}
            before={steps[n - 1]}
            isLast={n === steps.length - 1}
            isOpen={isOpen}
          />
        ))}
      </ol>
    </div>
  );
}

/**
 * Let in, matched, waited, ran, answered: how long each took, beside each other in true lengths, with their names below. A long wait is
 * cut short, and says so.
 */
function PhaseBar({ steps }: { steps: readonly Step[] }) {
  const phases = phasesOf(steps).filter(({ ms }) => ms > 0);
  const all = phases.reduce((sum, { ms }) => sum + ms, 0);
  if (all === 0) return null;
  const shown = phases.map((phase) => {
    const rest = Math.max(1, all - phase.ms);
    const isCut = phase.name === "waited" && phase.ms > IDLE * rest && phases.length > 1;
    return { ...phase, isCut, length: isCut ? rest : phase.ms };
  });
  return (
    <div class="phases" role="img" aria-label={phases.map(({ name, ms }) => `${name} ${duration(ms)}`).join(", ")}>
      <div class="phase-bar">
        {shown.map(({ name, ms, tone, isCut, length }) => (
          <div
            key={name}
            class="phase"
            data-tone={tone}
            data-cut={isCut}
            style={{ flexGrow: length }}
            title={`${name}: ${duration(ms)}`}
          />
        ))}
      </div>
      <div class="phase-names">
        {shown.map(({ name, ms, tone, isCut }) => (
          <span key={name} data-tone={tone}>
            <span class="phase-sign" data-cut={isCut} /> {name}{" "}
            <span class="mono">{isCut ? `⋯ ${duration(ms)} ⋯` : duration(ms)}</span>
          </span>
        ))}
      </div>
    </div>
  );
}

type Line = { step: Step; began: number; before: Step | undefined; isLast: boolean; isOpen: boolean };

function StepLine({ step, began, before, isLast, isOpen }: Line) {
  const open = useSignal(false);
  const at = new Date(step.at).getTime();
  const gap = before ? at - new Date(before.at).getTime() : 0;
  const { words, tone, body } = stepWords(step);
  return (
    <li data-tone={tone}>
      <span class="step-dot" aria-hidden="true" />
      <div class="step">
        <div class="step-line">
          <button
            type="button"
            class="step-words"
            aria-expanded={open.value}
            onClick={() => (open.value = !open.value)}
          >
            {words}
          </button>
          <span class="step-time faint">
            {before ? <span class="mono">+{duration(gap)}</span> : <ClockTime at={step.at} />}
          </span>
        </div>
        {step.name === "mapping.tried" && <Tried detail={step.detail} />}
        {body !== undefined && <pre class="step-text">{body}</pre>}
        {open.value && (
          <div class="step-raw">
            <p class="faint">
              <span class="mono">{step.name}</span>, {duration(at - began)} after it came
            </p>
            <RawJson value={step} />
          </div>
        )}
        {isLast && isOpen && (
          <p class="step-open" data-tone="running">
            <Running since={step.at} /> since then, and still open
          </p>
        )}
      </div>
    </li>
  );
}

type Trial = { mapping?: string; path?: string; expected?: unknown; found?: unknown };

/** The mappings that did not match, each with the pair that failed. */
function Tried({ detail }: { detail: Step["detail"] }) {
  const { tried = [], untold = 0 } = (detail ?? {}) as { tried?: Trial[]; untold?: number };
  if (tried.length === 0) return null;
  return (
    <div class="scroll-x">
      <table class="tried">
        <thead>
          <tr>
            {["Mapping", "Path", "Expected", "Found"].map((word) => (
              <th key={word} scope="col">
                {word}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {tried.map(({ mapping, path, expected, found }) => (
            <tr key={mapping}>
              <td class="mono" data-name="Mapping">
                {mapping}
              </td>
              <td class="mono" data-name="Path">
                {path}
              </td>
              <td class="mono" data-name="Expected">
                {textOf(expected)}
              </td>
              <td class="mono" data-name="Found">
                {found === null || found === undefined ? <span class="faint">nothing</span> : textOf(found)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {untold > 0 && <p class="faint">and {untold} more</p>}
    </div>
  );
}

/** A value as it stands in the configuration or in the request; a list of values is any of them. */
function textOf(value: unknown): string {
  return Array.isArray(value)
    ? value.map(textOf).join(" or ")
    : typeof value === "string"
      ? value
      : JSON.stringify(value);
}
