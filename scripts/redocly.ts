/** The environment of a `redocly` that sends no telemetry and does not ask for newer versions. */
export const QUIET = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_NOTIFICATIONS: "true" };
