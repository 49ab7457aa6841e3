import { spawnSync } from "node:child_process";

/** Runs rules of nftables; answers what is wrong with that, undefined when nothing is. */
const nft = (rules: string): string | undefined => {
  const { error, status, stderr } = spawnSync("nft", ["-f", "-"], { input: rules, encoding: "utf8" });
  if (error) return "nft is not installed (Debian: apt-get install nftables)";
  return status === 0 ? undefined : `nft is refused here: ${stderr.trim().split("\n")[0]}`;
};

let known: { why: string | undefined } | undefined;

/** Why packets cannot be dropped here; undefined when they can. */
export const whyNoFirewall = (): string | undefined => {
  const probe = `inet gateway_test_probe_${process.pid}`;
  known ??= { why: nft(`add table ${probe}\ndelete table ${probe}\n`) };
  return known.why;
};

/** No test cuts for so long. Who is killed mends nothing, and another's server may have the port next. */
const LONGEST = "120s";

/** Drops what goes to and comes from one port of this machine, as a cut network does: nobody is told. Touches no other port, and ends by itself. */
export const createFirewall = (port: number) => {
  const table = `inet gateway_test_${port}`;
  let isCut = false;
  const mend = (): void => {
    if (isCut) nft(`delete table ${table}\n`);
    isCut = false;
    process.off("exit", mend);
  };
  return {
    cut(): void {
      process.on("exit", mend);
      isCut = true;
      const why = nft(`table ${table} {
        set ports {
          type inet_service; flags timeout;
          elements = { ${port} timeout ${LONGEST} }
        }
        chain cut {
          type filter hook input priority 0; policy accept;
          ip daddr 127.0.0.1 tcp dport @ports drop
          ip saddr 127.0.0.1 tcp sport @ports drop
        }
      }
      `);
      if (why) throw new Error(why);
    },
    mend,
    [Symbol.dispose]: mend,
  };
};
