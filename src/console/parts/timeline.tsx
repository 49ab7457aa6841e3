import { useSignal } from "@preact/signals";
import { now } from "../app/clock.ts";
import { hrefOf } from "../app/router.ts";
import { axisOf, segmentsOf } from "../lib/bar.ts";
import { duration } from "../lib/format.ts";
import { type Step, stepWords } from "../lib/steps.ts";
import { Bar, BarLegend } from "./bar.tsx";
import { Id } from "./copy.tsx";
import { RawJson } from "./json.tsx";
import { Prose } from "./prose.tsx";
import { ClockTime, Running } from "./time.tsx";
import { Misses } from "./trial.tsx";
import { Waterfall } from "./waterfall.tsx";

/** A bar of durations, and a list of the steps. `isOpen`: the last step is not the end. */
export function Timeline({ steps, isOpen }: { steps: readonly Step[]; isOpen: boolean }) {
  const first = steps[0];
  if (!first) return <p class="faint">No steps are recorded.</p>;
  const segments = segmentsOf(steps, isOpen ? now.value : undefined);
  const axis = axisOf(segments);
  const began = Date.parse(first.at);
  return (
    <div class="stack timeline">
      {steps.some(({ name }) => name === "turn.started") ? (
        <Waterfall steps={steps} isOpen={isOpen} />
      ) : (
        segments.length > 0 && (
          <div class="bars">
            <Bar segments={segments} axis={axis} />
            <BarLegend segments={segments} axis={axis} />
          </div>
        )
      )}
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

type Line = { step: Step; began: number; before: Step | undefined; isLast: boolean; isOpen: boolean };

function StepLine({ step, began, before, isLast, isOpen }: Line) {
  const open = useSignal(false);
  const at = new Date(step.at).getTime();
  const gap = before ? at - new Date(before.at).getTime() : 0;
  const { words, tone, body, link } = stepWords(step);
  return (
    <li data-tone={tone}>
      <span class="step-dot" aria-hidden="true" />
      <div class="stack step">
        <div class="step-line">
          <button
            type="button"
            class="step-words"
            aria-expanded={open.value}
            onClick={() => (open.value = !open.value)}
          >
            <Prose text={words} />
          </button>
          <span class="step-time faint">
            {before ? <span class="mono">+{duration(gap)}</span> : <ClockTime at={step.at} />}
          </span>
        </div>
        {link && <Id id={link} href={hrefOf(`/d/${link}`)} most={40} />}
        {step.name === "mapping.tried" && <Misfits detail={step.detail} />}
        {body !== undefined && <pre class="raw step-text">{body}</pre>}
        {open.value && (
          <div class="step-raw">
            <p class="faint">
              <span class="mono">{step.name}</span> · {duration(at - began)} after the first step
            </p>
            <RawJson value={step} />
          </div>
        )}
        {isLast && isOpen && (
          <p class="running">
            {tone === "waiting" ? "Waiting" : "Running"}, <Running since={step.at} />
          </p>
        )}
      </div>
    </li>
  );
}

type Tried = { mapping: string; path: string; expected: string[]; found?: string };

/** The mappings that did not match, each with the pair that failed. */
function Misfits({ detail }: { detail: Step["detail"] }) {
  const { tried = [], untold = 0 } = (detail ?? {}) as { tried?: Tried[]; untold?: number };
  if (tried.length === 0) return null;
  const rows = tried.map(({ mapping, path, expected, found = null }) => ({
    key: mapping,
    head: mapping,
    failed: { path, expected: [expected].flat(), found },
  }));
  return (
    <>
      <Misses label="Mappings that do not match" word="Mapping" rows={rows} />
      {untold > 0 && <p class="faint">and {untold} more</p>}
    </>
  );
}
