import { announcementMethods } from "./announcements.ts";
import { keyMethods } from "./api-keys.ts";
import { beatMethods } from "./beats.ts";
import { deliveryMethods } from "./deliveries.ts";
import { eventMethods } from "./events.ts";
import { gatewayMethods } from "./gateway-log.ts";
import type { Methods } from "./methods.ts";
import { pauseMethods } from "./pauses.ts";
import { usageMethods } from "./usage-counters.ts";

/** The inbound half: events, beats, pauses, announcements, deliveries, API keys, usage and the gateway's stream. */
export const inboundMethods: { write: Methods; read: Methods } = {
  write: {
    ...eventMethods.write,
    ...beatMethods.write,
    ...pauseMethods,
    ...announcementMethods.write,
    ...deliveryMethods.write,
    ...gatewayMethods.write,
    ...keyMethods.write,
    ...usageMethods.write,
  },
  read: {
    ...eventMethods.read,
    ...beatMethods.read,
    ...announcementMethods.read,
    ...deliveryMethods.read,
    ...gatewayMethods.read,
    ...keyMethods.read,
    ...usageMethods.read,
  },
};
