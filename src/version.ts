import manifest from "../package.json" with { type: "json" };

export const { version } = manifest;

/** Packages that are there only where somebody needs them, and which version is meant. */
export const packageVersions = { ...manifest.optionalDependencies, ...manifest.peerDependencies };
