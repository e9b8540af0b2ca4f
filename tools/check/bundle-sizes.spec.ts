import { expect, it } from '@jest/globals';
import { loadsOf, type Manifest } from './bundle-sizes.ts';

it('a page is counted with all that it imports and the first load does not bring', () => {
  const manifest: Manifest = {
    'index.html': { file: 'index.js', isEntry: true, imports: ['_react.js'] },
    '_react.js': { file: 'react.js' },
    '_chart.js': { file: 'chart.js', imports: ['_react.js'] },
    'src/bill.tsx': { file: 'bill.js', isDynamicEntry: true, imports: ['_chart.js', 'index.html'] },
    'src/terminal.tsx': { file: 'terminal.js', isDynamicEntry: true, imports: ['_react.js'] },
    'src/icon.svg': { file: 'icon.svg' },
  };
  const sizes: Record<string, number> = {
    'index.js': 10,
    'react.js': 60,
    'chart.js': 5,
    'bill.js': 2,
    'terminal.js': 80,
  };
  expect(loadsOf(manifest, (file) => (sizes[file] ?? 0) * 1024)).toEqual([
    { name: 'first load', kilobytes: 70, budget: 200 },
    { name: 'src/bill.tsx', kilobytes: 7, budget: 40 },
    { name: 'src/terminal.tsx', kilobytes: 80, budget: 90 },
  ]);
});
