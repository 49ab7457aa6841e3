import { EventEmitter, once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { watchFolder } from "#config/watch-folder.ts";
import { folder } from "./configs.ts";

/** A folder under watch, and what is heard of it: `look`, and `poll` when it is no longer watched. */
const watched = (here = folder()) => {
  const heard = new EventEmitter();
  let looks = 0;
  const look = () => {
    looks++;
    heard.emit("look");
  };
  const poll = () => {
    heard.emit("poll");
    return { close: () => heard.emit("closed") };
  };
  const watcher = watchFolder(here, look, poll);
  onTestFinished(() => watcher.close());
  return { here, heard, watcher, looks: () => looks };
};

const change = async ({ here, heard }: ReturnType<typeof watched>, n: number) => {
  const look = once(heard, "look");
  writeFileSync(join(here, "other"), `${n}`);
  await look;
};

test("is looked at when something in it changes", async () => {
  const watch = watched();
  for (let n = 0; n < 3; n++) await change(watch, n);
  expect(watch.looks()).toBeGreaterThanOrEqual(3);
});

test("is polled instead where others write to it all the time, and then no longer told of", async () => {
  const watch = watched();
  const polled = once(watch.heard, "poll");
  let isPolled = false;
  void polled.then(() => {
    isPolled = true;
  });
  for (let n = 0; !isPolled; n++) await change(watch, n);
  const before = watch.looks();
  // Another watch of the same folder hears of it, and this one does not.
  const second = watched(watch.here);
  await change(second, 0);
  expect(watch.looks()).toBe(before);
  const closed = once(watch.heard, "closed");
  watch.watcher.close();
  await closed;
});

test("is polled where it cannot be watched", async () => {
  const here = folder();
  rmSync(here, { recursive: true });
  const heard: string[] = [];
  const watcher = watchFolder(
    here,
    () => {},
    () => {
      heard.push("poll");
      return { close: () => heard.push("closed") };
    },
  );
  watcher.close();
  expect(heard).toEqual(["poll", "closed"]);
});
