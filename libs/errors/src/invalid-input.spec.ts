import { expect, it } from '@jest/globals';
import { invalidField, invalidInput, requireSomeField } from './invalid-input.js';

const fault = (path: string, message: string) => ({ path, code: 'rule', message });

it('states one fault as a sentence that names the field', () => {
  const error = invalidInput([fault('limit', 'limit must be a whole number from 1 to 100')]);
  expect([error.code, error.message]).toEqual(['invalid_input', 'limit must be a whole number from 1 to 100.']);
});

it.each([
  ['members.0.email', 'email must be an e-mail address', 'members.0.email must be an e-mail address.'],
  ['gpus.3', 'each entry of gpus must be an object', 'gpus.3: each entry of gpus must be an object.'],
  ['events.0.sku', 'events.0.sku must be 1 to 100 letters', 'events.0.sku must be 1 to 100 letters.'],
  ['', 'a JSON object is expected', 'a JSON object is expected.'],
])('names the whole path of a fault at %j', (path, message, sentence) => {
  expect(invalidInput([fault(path, message)]).message).toBe(sentence);
});

it('says how many faults there are, and tells callers the first hundred', () => {
  const error = invalidInput(
    Array.from({ length: 101 }, (_, index) => fault(`field_${index}`, `field_${index} is not a known field`)),
  );
  expect(error.message).toBe('field_0 is not a known field (the first of 101 faults).');
  expect([error.details.errors?.length, error.toWire().errors?.length]).toEqual([101, 100]);
});

it('refuses one field in the same words, with or without their full stop', () => {
  for (const message of ['must be a GPU of this pool', 'must be a GPU of this pool.']) {
    expect(invalidField('gpu_ids.0', 'isGpu', message).toWire()).toEqual({
      code: 'invalid_input',
      message: 'gpu_ids.0 must be a GPU of this pool.',
      errors: [{ path: 'gpu_ids.0', code: 'isGpu', message: 'gpu_ids.0 must be a GPU of this pool' }],
    });
  }
});

it('refuses a change without a field that it could change, and names each', () => {
  expect(() => requireSomeField({ name: null }, 'name', 'image')).not.toThrow();
  for (const body of [{}, { name: undefined }, { other: 1 }]) {
    expect(() => requireSomeField(body, 'name', 'image')).toThrow(
      expect.objectContaining({
        code: 'invalid_input',
        message: 'At least one of these is needed: name, image.',
        details: { errors: [expect.objectContaining({ path: 'name' }), expect.objectContaining({ path: 'image' })] },
      }),
    );
  }
});
