import { type ChildProcess, spawn } from "node:child_process";
import type { Writable } from "node:stream";

/**
 * Waits for the end of its input, which is the end of the gateway however that came, and then ends the groups that it was told of.
 * It minds no signal: a supervisor sends those to all at once, and the gateway still has turns to finish.
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

/** From now on this group does not outlive the gateway, not even where that is killed. Needs a `/bin/sh`; without one nothing is promised. */
export const watchGroup = (id: number): void => {
  watched.add(id);
  if (guard === undefined) startGuard();
  else tell(`+ ${id}\n`);
};

export const forgetGroup = (id: number): void => {
  if (watched.delete(id)) tell(`- ${id}\n`);
};

const startGuard = (): void => {
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
};

const tell = (lines: string): void => {
  if (guard?.stdin?.writable) guard.stdin.write(lines);
};
