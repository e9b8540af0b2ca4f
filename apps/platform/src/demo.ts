import { messageOf } from '@atoll/errors';
import { demoText } from './demo/demo-text.js';
import { loadDemo } from './demo/load-demo.js';

/**
 * `npm run demo -- URL`, with the operator's key in ATOLL_KEY: loads the demo into a running platform that is empty.
 */
const [url = 'http://127.0.0.1:3000'] = process.argv.slice(2);

try {
  const adminKey = process.env.ATOLL_KEY;
  if (!adminKey) throw new Error('Set ATOLL_KEY to the key of the operator.');
  console.log(demoText(await loadDemo({ url, adminKey })));
} catch (error) {
  console.error(`The demo was not loaded: ${messageOf(error)}`);
  process.exitCode = 1;
}
