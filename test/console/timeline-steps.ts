import openapi from "#generated/openapi.json" with { type: "json" };

/** The names of steps that the contract lists. */
export function timelineSteps(): string[] {
  const { TimelineStep } = openapi.components.schemas as unknown as {
    TimelineStep: { properties: { name: { enum: string[] } } };
  };
  return TimelineStep.properties.name.enum;
}
