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

it.each(['no space left on device', 'address already in use', 'unresolvable CDI device'])(
  'the command `%s` is what the image cannot run, and says nothing of the engine',
  (command) => {
    const text = `crun: executable file \`${command}\` not found in $PATH: No such file or directory: OCI runtime attempted to invoke a command that was not found`;
    expect(clusterErrorOf(new EngineRefusal(500, text))).toMatchObject({
      code: 'invalid',
      message: 'The image cannot run this command.',
    });
  },
);

it('a text of millions of characters, as a registry can have an engine say it, is read at its ends alone', () => {
  const long = 'exec available memory limit '.repeat(150_000);
  const codeOf = (text: string) => clusterErrorOf(new EngineRefusal(500, text)).code;
  expect(new EngineRefusal(500, long).text.length).toBeLessThan(5_000);
  expect(codeOf(`no space left on device: ${long}`)).toBe('no_space');
  expect(codeOf(`${long}: no space left on device`)).toBe('no_space');
});
