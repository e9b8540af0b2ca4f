/** The services of a platform, each with its own events, in the order in which they are listed. */
export const platformServices = ['teams', 'billing', 'gpuaas', 'pods'] as const;
export type PlatformService = (typeof platformServices)[number];
