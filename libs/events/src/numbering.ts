/**
 * SQL: the events that are due, at most $1, without those of $2, as of a leader since $3. Those without a position get
 * the next ones.
 *
 * `seq` is taken by each event after the row lock of its object, so of two events about one object the later has the
 * greater one, and cannot be seen before the earlier. The order of ids or of transactions has neither property.
 * Positions are given to what is seen, in the order of `seq`: a commit that comes late gets a later position, and
 * inverts nothing. What has no position yet is due whatever its time says: its writer may have begun after this
 * statement took `now()`, and committed before it took its snapshot. Exactly one session numbers, the one that took the
 * relay's advisory lock in an earlier statement; so this statement sees all that was numbered before.
 */
export const numberAndFetch = `
  WITH due AS (
    SELECT id, seq, event_name, position FROM outbox
    WHERE (position IS NULL OR next_attempt_at <= now()) AND id <> ALL($2::uuid[]) ORDER BY seq LIMIT $1
  ), fresh AS (
    SELECT id, event_name, (SELECT COALESCE(max(position), 0) FROM event_head) + row_number() OVER (ORDER BY seq) AS position
    FROM due WHERE position IS NULL
  ), linked AS (
    SELECT fresh.id, fresh.event_name, fresh.position,
           COALESCE(lag(fresh.position) OVER (PARTITION BY fresh.event_name ORDER BY fresh.position), head.position, 0) AS previous
    FROM fresh LEFT JOIN event_head head ON head.event_name = fresh.event_name
  ), heads AS (
    INSERT INTO event_head (event_name, position) SELECT event_name, max(position) FROM linked GROUP BY event_name
    ON CONFLICT (event_name) DO UPDATE SET position = excluded.position
  ), numbered AS (
    UPDATE outbox SET position = linked.position, previous = linked.previous FROM linked WHERE outbox.id = linked.id
    RETURNING outbox.*
  ), handed AS (
    SELECT * FROM numbered
    UNION ALL
    SELECT outbox.* FROM outbox JOIN due USING (id) WHERE due.position IS NOT NULL
  )
  SELECT id, event_name AS name, payload, request_id AS "requestId", traceparent, occurred_at AS "occurredAt",
         position::float8 AS position, previous::float8 AS previous, attempts + 1 + (occurred_at < $3)::int AS attempt
  FROM handed ORDER BY position`;
