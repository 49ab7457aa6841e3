import { expect, it } from "vitest";
import { createBatcher, Gates } from "#store/postgres/batches.ts";
import { createReadyWork } from "#store/postgres/ready-work.ts";
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
