import type { Mutation } from './mutations.js';

/** What has rules that cost money, GPUs or another team's privacy when they are wrong. */
export interface Target {
  readonly name: string;
  /** Globs. */
  readonly files: readonly string[];
  /** Of all mutations of these files; all where it is left out. */
  readonly isOne?: (mutation: Mutation) => boolean;
}

const ofAccess =
  /\brequire(?:Permission|PlatformAdmin|User|Gateway|OwnUser|WholeUser|Owner|Live|Fresh|Power)|isPlatformAdmin|\b(?:team|user|workspace)_?[iI]d\b/;

export const targets: readonly Target[] = [
  { name: 'state-machine', files: ['libs/state-machine/src/**/*.ts'] },
  { name: 'events', files: ['libs/events/src/**/*.ts'] },
  { name: 'waiting', files: ['libs/waiting/src/**/*.ts'] },
  { name: 'rating', files: ['apps/billing/src/{money,reports,usage}/**/*.ts'] },
  { name: 'allocation', files: ['apps/gpuaas/src/{allocation,sharing}/**/*.ts'] },
  {
    name: 'authorisation',
    files: [
      'libs/contracts/src/access.ts',
      'libs/team-directory/src/**/*.ts',
      'apps/{billing,gpuaas,pods,teams}/src/**/*.ts',
    ],
    isOne: ({ what, path }) => path === 'libs/contracts/src/access.ts' || ofAccess.test(what),
  },
];
