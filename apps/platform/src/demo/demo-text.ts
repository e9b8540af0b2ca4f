import type { LoadedDemo } from './load-demo.js';

/** Who to log in as, to see the demo. */
export function demoText({ teams, durationMs }: LoadedDemo): string {
  const lines = teams.map(({ name, ownerKey }) => `  ${name.padEnd(18)} ${ownerKey}`);
  return `
The demo was loaded in ${(durationMs / 1000).toFixed(1)} s. Log in to the console with one of these keys, or as the operator:

${lines.join('\n')}
`;
}
