import { rest } from "#console/app/api.ts";
import { whyNot } from "#console/app/session.ts";
import { say } from "#console/app/toasts.ts";
import { ActionButton } from "./fields.tsx";
import { Failed } from "./trouble.tsx";
import { useAction } from "./use.ts";

const WORD = "Run heartbeat now";
const WORDS = {
  started: "Heartbeat started.",
  "nothing-waiting": "No events are waiting for this agent.",
  running: "A heartbeat is already running.",
  paused: "The agent is paused. Events wait until it is resumed.",
} as const;

type BeatNowOf = { agent: string; why?: string | undefined; done?: () => void; isSmall?: true };

/** Makes an agent handle its waiting events at once. With `isSmall` the button shows only its icon. */
export function BeatNow({ agent, why, done, isSmall }: BeatNowOf) {
  const action = useAction(async () => {
    const { outcome } = await rest().agents.beat(agent);
    say(WORDS[outcome as keyof typeof WORDS] ?? outcome);
    done?.();
  });
  return (
    <>
      <ActionButton icon="activity" why={whyNot("rest") ?? why} runs={action} {...(isSmall && { name: WORD })}>
        {!isSmall && WORD}
      </ActionButton>
      <Failed of={action} />
    </>
  );
}
