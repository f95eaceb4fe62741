import { expect, test } from "vitest";
import { Idle } from "../src/idle";

test("memory is given back once after each busy time, and not while there is work", () => {
  const idle = new Idle();
  const seconds = [5, 9, 9.1, 9.2, 9.3, 9.9, 10.5, 10.6, 10.7, 11.1, 11.2];
  const given = seconds.map((spent) => idle.shouldGiveBack(spent * 1_000_000));
  expect(given).toEqual([false, false, true, false, false, false, false, true, false, false, true]);
});
