import { expect, it } from '@jest/globals';
import { publicHost, shownHost } from './shown-host.js';

it.each([
  ['0.0.0.0', '127.0.0.1', 'localhost'],
  ['::', '127.0.0.1', 'localhost'],
  ['::1', '[::1]', 'localhost'],
  ['192.0.2.7', '192.0.2.7', '192.0.2.7'],
  ['2001:db8::7', '[2001:db8::7]', '[2001:db8::7]'],
  ['atoll.example.com', 'atoll.example.com', 'atoll.example.com'],
])('what listens on %s is reached at %s, and by pages at %s', (host, shown, ofPages) => {
  expect([shownHost(host), publicHost(host)]).toEqual([shown, ofPages]);
});
