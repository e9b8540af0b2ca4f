import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Podman } from '@atoll/testing';
import { codeOf } from '../contract/cluster-under-test-fixture.js';

const files = 20_000;

const storageList = ({ root }: Podman) => join(root, 'overlay-containers', 'containers.json');

/**
 * What Podman is left with where a container is removed by its name while it is created: it knows the container and has
 * no storage of it.
 */
export async function loseStorage(podman: Podman, id: string): Promise<void> {
  const list = JSON.parse(await readFile(storageList(podman), 'utf8')) as { id: string }[];
  await writeFile(storageList(podman), JSON.stringify(list.filter((container) => container.id !== id)));
}

/**
 * Kills the engine while it removes a container, when half of its storage is gone, and starts it again: Podman knows
 * the container as `removing`, and answers 500 wherever it would describe it. The container runs, and has `sh`.
 * Resolves with whether that came about: on a busy machine the removal may have ended before the engine was killed.
 */
export async function leaveHalfRemoved(podman: Podman, name: string, remove: () => Promise<void>): Promise<boolean> {
  // Files take time to be removed, after the entry in the list of the storage.
  await podman.cli('exec', name, 'sh', '-c', `mkdir /files && cd /files && seq 1 ${files} | xargs touch`);
  const id = (await podman.cli('inspect', '--format', '{{.Id}}', name)).trim();
  const list = storageList(podman);
  const removal = codeOf(remove());
  while ((await readFile(list, 'utf8')).includes(id)) await delay(1);
  await podman.kill();
  await removal;
  await podman.restart();
  return (await podman.cli('ps', '--all', '--filter', `name=${name}`, '--format', '{{.State}}')).trim() === 'Removing';
}
