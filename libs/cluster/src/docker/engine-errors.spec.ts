import { expect, it } from '@jest/globals';
import { clusterErrorOf, EngineRefusal } from './engine-errors.js';

it.each([
  ['Docker', 400, 'no command specified'],
  ['Podman', 500, 'container create: no command or entrypoint provided, and no CMD or ENTRYPOINT from image'],
] as const)('%s has no command to run where neither the image nor the pod names one', (_engine, status, text) => {
  expect(clusterErrorOf(new EngineRefusal(status, text))).toMatchObject({
    code: 'invalid',
    message: 'The image names no command: set one.',
  });
});

it('says that an engine without CDI, as Docker before 25, gives no slices of real GPUs', () => {
  const refusal = new EngineRefusal(500, 'could not select device driver "cdi" with capabilities: []');
  expect(clusterErrorOf(refusal)).toMatchObject({
    code: 'not_supported',
    message: 'The container engine gives no slices of real GPUs to pods.',
  });
});
