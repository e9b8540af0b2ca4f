import { expect, it } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import type { RunRef } from '../objects.js';
import type { Containers } from './containers.js';
import type { Engine } from './engine.js';
import { Links } from './links.js';
import { Names } from './names.js';
import { Sessions } from './sessions.js';

it('tells whoever waits for a connection that is opening when the driver is closed, and nobody else', async () => {
  const pod: RunRef = { kind: 'pod', id: 'p1', run: 1 };
  const creation = Promise.withResolvers<string>();
  const begun = Promise.withResolvers<void>();
  const containers = {
    find: () => Promise.resolve({ Id: 'c1', State: { Status: 'running', StartedAt: 'now' }, Config: { Labels: {} } }),
    create: () => (begun.resolve(), creation.promise),
  };
  const links = new Links(
    {
      engine: {} as Engine,
      containers: containers as unknown as Containers,
      names: new Names('here'),
      sessions: new Sessions(),
    },
    'helper',
  );
  const connecting = links.connect(pod, 80, new AbortController().signal);
  await begun.promise;
  links.close();
  creation.reject(new Error('The connection was closed.'));
  await expect(connecting).rejects.toThrow('The connection was closed.');
  // A rejection that nobody handles fails the spec, as it would end the process.
  await turn();
});
