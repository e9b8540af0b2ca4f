import { restSql } from './machine-migrations.js';

/** Of what a lane, or a machine, may begin while both wait, one in so many is a row at rest. */
export const restShare = 8;

export const isFresh = 'attempts = 0';
export const isRetried = 'attempts > 0';
const isUnderWay = `${restSql} = 0`;
const isAtRest = `${restSql} = 1`;

/** Kinds of due rows, as the indexes have them apart: those that have failed in their state, and those at rest. */
export const kinds = {
  fresh: `${isUnderWay} AND ${isFresh}`,
  retried: `${isUnderWay} AND ${isRetried}`,
  fresh_rest: `${isAtRest} AND ${isFresh}`,
  retried_rest: `${isAtRest} AND ${isRetried}`,
};
export type Kind = keyof typeof kinds;

/** A lane is of the first of these kinds of which it has a claimable row, and lanes are served in this order. */
export const laneKinds = Object.keys(kinds) as Kind[];
export const retried: readonly Kind[] = ['retried', 'retried_rest'];
export const rest: readonly Kind[] = ['fresh_rest', 'retried_rest'];
export const notRest: readonly Kind[] = ['fresh', 'retried'];

/**
 * SQL for where a row stands among those at rest and the others, by its place among its like: the first at rest after
 * `ahead` others, each further one after `restShare` more.
 */
export const standing = (place: string, ahead: string) =>
  `CASE WHEN is_at_rest THEN ${restShare} * (${place} - 1) + ${ahead} + 0.5 ELSE ${place} END`;
