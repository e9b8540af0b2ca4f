/** Each benchmark starts when it is imported, and reads its own flags. */
const benchmarks = {
  platform: () => import('./platform.js'),
  billing: () => import('./billing.js'),
  'billing-growth': () => import('./billing-growth.js'),
  'billing-load': () => import('./billing-load.js'),
  compat: () => import('./compat.js'),
  console: () => import('./console.js'),
  events: () => import('./events.js'),
  gpuaas: () => import('./gpuaas.js'),
  'key-flood': () => import('./key-flood.js'),
  machines: () => import('./machines.js'),
  neighbours: () => import('./neighbours.js'),
  'pod-logs': () => import('./pod-logs.js'),
  pods: () => import('./pods.js'),
  sessions: () => import('./sessions.js'),
  'team-listing': () => import('./team-listing.js'),
};

const isBenchmark = (name: string): name is keyof typeof benchmarks => Object.hasOwn(benchmarks, name);

/** `npm run bench NAME -- --flag`: one benchmark, by default that of the platform. A wrong name lists them all. */
const [first = '-'] = process.argv.slice(2);
const isNamed = !first.startsWith('-');
if (isNamed) process.argv.splice(2, 1);
const name = isNamed ? first : 'platform';
if (isBenchmark(name)) {
  await benchmarks[name]();
} else {
  console.error(`There is no benchmark ${name}. Use one of: ${Object.keys(benchmarks).join(', ')}`);
  process.exitCode = 1;
}
