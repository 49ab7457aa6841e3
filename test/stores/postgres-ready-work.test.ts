import { expect, it } from "vitest";
import { createReadyWork } from "#store/postgres/ready-work.ts";

it("others are told of turns that became ready here only where a claim left some, or none came", () => {
  let told = 0;
  const work = createReadyWork(() => told++);
  work.add();
  work.claim()();
  work.flush();
  expect(told).toBe(0);
  work.add();
  const leftNothing = work.claim();
  work.add();
  leftNothing();
  work.flush();
  expect(told).toBe(1);
  work.flush();
  expect(told).toBe(1);
  work.add();
  work.claim();
  work.flush();
  expect(told).toBe(2);
});
