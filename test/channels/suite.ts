import { describe } from "vitest";
import type { ChannelUnderTest } from "./channel-under-test.ts";
import { answersTests } from "./suite/answers.ts";
import { connectionsTests } from "./suite/connections.ts";
import { requestsTests } from "./suite/requests.ts";

/** What channel.ts asks of every channel, against servers that behave badly. */
export const channelSuite = (underTest: ChannelUnderTest): void => {
  describe(`the ${underTest.name} channel`, () => {
    answersTests(underTest);
    connectionsTests(underTest);
    requestsTests(underTest);
  });
};
