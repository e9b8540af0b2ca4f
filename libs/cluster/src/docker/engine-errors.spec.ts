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

const mount =
  'error mounting "/srv/volumes/1/_data" to rootfs at "/usr/bin/env": mount /srv/volumes/1/_data:/usr/bin/env';
it.each([
  [
    'unable to find user trainer: no matching entries in passwd file',
    'The image does not have the user as which it runs.',
  ],
  ['unable to find group gpu: no matching entries in group file', 'The image does not have the user as which it runs.'],
  ['uids and gids must be in range 0-2147483647', 'The image does not have the user as which it runs.'],
  [
    'workdir "/etc/passwd" exists on container 8f7e2b6691e4, but is not a directory',
    'The working directory of the image is a file.',
  ],
  ['Cannot mkdir: /etc/passwd is not a directory', 'The working directory of the image is a file.'],
  [
    'failed to copy: source /var/lib/docker/overlay2/8f7e2b/merged/usr/bin/env is not directory',
    'The image has a file where a volume is mounted.',
  ],
  [
    `runc: runc create failed: unable to start container process: error during container init: ${mount} (via /proc/self/fd/6), flags: 0x5006: not a directory`,
    'The image has a file where a volume is mounted.',
  ],
  [
    'identifying source directory for copy up into volume v1: lstat /srv/merged/usr/bin/env/x: not a directory',
    'The image has a file where a volume is mounted.',
  ],
])('a pod whose image cannot run so is told why, and is not tried again: %s', (text, message) => {
  expect(clusterErrorOf(new EngineRefusal(500, text))).toMatchObject({ code: 'invalid', message, isPermanent: true });
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
