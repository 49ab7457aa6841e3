import { type ChildProcess, spawn } from "node:child_process";
import type { Writable } from "node:stream";
import type { Clock } from "#kit/clock.ts";
import { once } from "#kit/once.ts";

/** The time that the system may take to clear away killed processes; a zombie that lasts longer has no parent that reaps it. */
const BURIAL_MS = 2_000;
const LONGEST_STEP_MS = 50;

/** A process group: a program that was started as its leader, and all descendants that did not leave the group. */
type Group = {
  readonly id: number;
  /** Asks it to end, then makes it. Resolves when none of it is left. Asked again, it answers the same. */
  stop(graceMs: number): Promise<void>;
  /** Makes it end at once. */
  kill(): Promise<void>;
};

/** The group of a program that was just started. It ends with the gateway. */
export function createGroup(id: number, clock: Clock): Group {
  watchGroup(id);
  let exited = false;
  let stopping: Promise<void> | undefined;

  /** Sends a signal; true if a process got it. After a false, the id may belong to another group. */
  const send = (signal: NodeJS.Signals | 0): boolean => {
    if (exited) return false;
    try {
      process.kill(-id, signal);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EPERM") return true;
      exited = true;
      forgetGroup(id);
      return false;
    }
  };
  const exitedWithin = async (ms: number): Promise<boolean> => {
    const until = clock.monotonic() + ms;
    for (let step = 1; send(0); step = Math.min(step * 2, LONGEST_STEP_MS)) {
      if (clock.monotonic() >= until) return false;
      await new Promise<void>((resolve) => clock.after(step, resolve));
    }
    return true;
  };
  const kill = once(async () => {
    send("SIGKILL");
    if (await exitedWithin(BURIAL_MS)) return;
    exited = true;
    forgetGroup(id);
  });
  return {
    id,
    kill,
    stop: (graceMs) => {
      stopping ??= (async () => {
        send("SIGTERM");
        if (!(await exitedWithin(graceMs))) await kill();
      })();
      return stopping;
    },
  };
}

/**
 * Waits for the end of its input, which is the end of the gateway for any reason, and then ends the reported groups. It ignores signals: a supervisor
 * sends them to all processes at once, and the gateway still has turns to finish.
 */
const SCRIPT = `
trap '' HUP INT TERM
all=' '
while read -r what group; do
  case "$all" in *" $group "*) all="\${all%% $group *} \${all#* $group }" ;; esac
  [ "$what" = + ] && all="$all$group "
done
[ "$all" = ' ' ] && exit
for group in $all; do kill -s TERM -- "-$group"; done 2>/dev/null
sleep 1
for group in $all; do kill -s KILL -- "-$group"; done 2>/dev/null
`;

const watched = new Set<number>();
let guard: ChildProcess | undefined;

/** From now on this group ends with the gateway, even if the gateway is killed. Requires a `/bin/sh`; without one there is no guarantee. */
function watchGroup(id: number): void {
  watched.add(id);
  if (guard === undefined) startGuard();
  else tell(`+ ${id}\n`);
}

function forgetGroup(id: number): void {
  if (watched.delete(id)) tell(`- ${id}\n`);
}

function startGuard(): void {
  const { PATH = "/usr/bin:/bin" } = process.env;
  const started = spawn("/bin/sh", ["-c", SCRIPT, "agent-gateway-guard"], {
    cwd: "/",
    env: { PATH },
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  guard = started;
  const lost = () => {
    if (guard === started) guard = undefined;
  };
  started.on("error", lost).on("exit", lost);
  started.unref();
  const input = started.stdin as Writable & { unref?: () => void };
  input.on("error", () => {});
  input.unref?.();
  tell([...watched].map((id) => `+ ${id}\n`).join(""));
}

function tell(lines: string): void {
  if (guard?.stdin?.writable) guard.stdin.write(lines);
}
