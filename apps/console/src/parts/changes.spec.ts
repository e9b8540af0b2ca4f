import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { sendChanges } from './changes.js';

const names = ['name', 'isOn'] as const;
const form = fc.record({ name: fc.constantFrom('', 'a', 'b'), isOn: fc.boolean() });

it('law: what was set in a form comes to what somebody else has set meanwhile, and takes none of that back', async () => {
  await fc.assert(
    fc.asyncProperty(form, form, fc.subarray([...names]), async (values, meanwhile, touched) => {
      const sent: object[] = [];
      await sendChanges(values, new Set(touched), (changes) => Promise.resolve(sent.push(changes)));
      expect(sent).toHaveLength(touched.length > 0 ? 1 : 0);
      const after = { ...meanwhile, ...sent[0] };
      for (const name of names) expect(after[name]).toBe((touched.includes(name) ? values : meanwhile)[name]);
    }),
  );
});
