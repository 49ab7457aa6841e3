/** Since when an agent is paused; null where it is not. */
export const pauses = `
ALTER TABLE agents ADD COLUMN paused_at INTEGER;
`;
