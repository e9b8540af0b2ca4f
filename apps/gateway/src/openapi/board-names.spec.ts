import { expect, it } from '@jest/globals';
import { boardNames } from '@atoll/contracts/gpuaas';
import { boards } from '@atoll/gpu';

it('the document lists the boards that can be shared, and no others', () => {
  expect([...boardNames]).toEqual(boards.map(({ name }) => name));
});
