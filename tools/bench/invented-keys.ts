import { parseArgs } from 'node:util';
import { createApiKey } from '@atoll/api-keys';
import { openLoop } from './open-loop.js';

/**
 * A flood of well-formed keys that nobody has, each sent once, in a process of its own; prints its answers by status.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '3000' },
    rate: { type: 'string', default: '350' },
    seconds: { type: 'string', default: '10' },
    addresses: { type: 'string', default: '1' },
  },
});

const addresses = Number(values.addresses);
const addressOf = (index: number): string => `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;

const { statuses } = await openLoop(
  Number(values.port),
  { perSecond: Number(values.rate), seconds: Number(values.seconds) },
  (index) => ({
    path: '/api/team',
    headers: { authorization: `Bearer ${createApiKey()}`, 'x-forwarded-for': addressOf(index % addresses) },
  }),
);
console.log(JSON.stringify(statuses));
