import { expect, it } from '@jest/globals';
import { missingConnections } from './connections.js';

const services = [
  { name: 'harbour', connections: 10 },
  { name: 'quay', connections: 20 },
];
const documentation =
  'Each process holds at most this many connections to PostgreSQL: harbour 14 (4 of\nthem for tides), quay 20, and one more.';
const compose = '# docker compose up --scale harbour=3 --scale gateway=3';
const postgres = (count: number) => ['postgres', '-c', `max_connections=${count}`];

it('is content where PostgreSQL accepts the connections of all replicas', () => {
  // 3 × (14 + 1) + 20 + 1, and 3 for superusers.
  expect(missingConnections(services, postgres(69), compose, documentation)).toEqual([]);
});

it('says how many PostgreSQL must accept, which is 100 by default', () => {
  expect(missingConnections(services, postgres(68), compose, documentation)).toEqual([
    'docker-compose.yml: postgres accepts 68 connections (max_connections), and 69 are needed',
  ]);
  expect(missingConnections(services, [], compose.replace('=3', '=6'), documentation)).toEqual([
    'docker-compose.yml: postgres accepts 100 connections (max_connections), and 114 are needed',
  ]);
});

it('names a service of which the documentation lists fewer connections than its pools have', () => {
  expect(missingConnections(services, postgres(200), compose, documentation.replace('quay 20', 'quay 19'))).toEqual([
    'docs/operations.md: 19 connections of quay are listed, and its pools have 20',
  ]);
});

it('counts the pools of a service that the documentation does not list', () => {
  const more = [...services, { name: 'dock', connections: 10 }];
  expect(missingConnections(more, postgres(79), compose, documentation)).toEqual([
    'docker-compose.yml: postgres accepts 79 connections (max_connections), and 80 are needed',
  ]);
});
