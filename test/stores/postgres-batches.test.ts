import { expect, it } from "vitest";
import { createBatcher, Gates } from "#store/postgres/batches.ts";
import { createHandingOver, createHoldBack, handedText, readHanded } from "#store/postgres/handing-over.ts";
import { createReadyWork } from "#store/postgres/ready-work.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { times } from "./world.ts";

const turnOfLoop = () => new Promise((resolve) => setImmediate(resolve));

it("a lone order goes at once, and beside a call that is on its way only many go together", async () => {
  const calls: { orders: readonly number[]; answer: () => void }[] = [];
  const order = createBatcher<number, number>({
    most: 100,
    atOnce: 3,
    bytesOf: undefined,
    pauseOf: undefined,
    gates: new Gates(),
    send: (orders) => new Promise((resolve) => calls.push({ orders, answer: () => resolve(orders) })),
  });
  const sizes = () => calls.map(({ orders }) => orders.length);
  const answers = [order(0)];
  await turnOfLoop();
  expect(sizes()).toEqual([1]);
  answers.push(...times(15, order));
  for (let n = 0; n < 3; n++) await turnOfLoop();
  expect(sizes()).toEqual([1]);
  answers.push(order(15));
  await turnOfLoop();
  expect(sizes()).toEqual([1, 16]);
  answers.push(order(16));
  calls[0]?.answer();
  calls[1]?.answer();
  await expect.poll(sizes).toEqual([1, 16, 1]);
  calls[2]?.answer();
  expect((await Promise.all(answers)).length).toBe(18);
});

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

it("what waits to be handed over is what came behind the agent that is furthest behind, whoever took it in and hands it over", async () => {
  const clock = createManualClock();
  const over = createHandingOver(clock);
  over.came(700);
  expect(over.waiting()).toBeUndefined();
  over.handed("main", 100);
  expect(over.waiting()).toBe(600);
  over.handed(...readHanded(handedText("main", 650)));
  over.handed("main", 400);
  expect(over.waiting()).toBe(50);
  over.handed("other agent", 900);
  expect(over.waiting()).toBe(250);
  await clock.advance(2_000);
  over.handed("other agent", 1_000);
  await clock.advance(2_000);
  expect(over.waiting()).toBe(0);
});

it("a call that took long once holds up what comes no longer than calls mostly do", () => {
  const pauseAfter = createHoldBack(() => 2);
  for (let n = 0; n < 100; n++) pauseAfter(4);
  expect(pauseAfter(4)).toBeCloseTo(8, 1);
  expect(pauseAfter(84)).toBeCloseTo(28, 1);
  for (let n = 0; n < 100; n++) pauseAfter(84);
  expect(pauseAfter(84)).toBe(100);
});
