const SHAPES = {
  done: "●",
  running: "◐",
  waiting: "○",
  plain: "○",
  failed: "✕",
  refused: "⊘",
  replay: "↻",
  warning: "▲",
} as const;
type Tone = keyof typeof SHAPES;

const TONES: Readonly<Record<string, Tone>> = {
  completed: "done",
  handled: "done",
  ok: "done",
  idle: "plain",
  delivered: "done",
  challenge: "done",
  repeated: "done",
  coalesced: "done",
  active: "done",
  running: "running",
  busy: "running",
  queued: "waiting",
  skipped: "waiting",
  unmatched: "waiting",
  paused: "waiting",
  cancelled: "waiting",
  gone: "waiting",
  failed: "failed",
  failing: "failed",
  stopped: "failed",
  dead: "failed",
  expired: "failed",
  refused: "refused",
  degraded: "warning",
  retrying: "warning",
  missed: "warning",
};

/** The word of a state: the API has `gone` if the turn or event is no longer stored. */
export function wordOf(state: string): string {
  return state === "gone" ? "deleted" : state;
}

/** The state of a thing: a shape, a colour and always the word. */
export function State({ of, word = wordOf(of), quiet = false }: { of: string; word?: string; quiet?: boolean }) {
  const tone = TONES[of] ?? "waiting";
  return (
    <span class={`state ${quiet ? "quiet" : ""}`} data-tone={tone}>
      <span aria-hidden="true">{SHAPES[tone]}</span> {word}
    </span>
  );
}

/** A sign that something was sent again. */
export function ReplaySign({ children = "replay" }: { children?: string }) {
  return (
    <span class="state quiet" data-tone="replay">
      <span aria-hidden="true">{SHAPES.replay}</span> {children}
    </span>
  );
}
