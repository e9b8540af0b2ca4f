import { instantJson } from '@atoll/database';

const objectJson = (object: string) =>
  `json_build_object('id', ${object}.id, 'name', ${object}.name, 'reference', ${object}.reference)`;

/** SQL for a whole ImagePolicy. Its objects stand in the order in which they were written: their ids grow. */
export const policyJson = (policy: string) => `json_build_object(
  'id', ${policy}.id, 'name', ${policy}.name, 'description', ${policy}.description, 'is_default', ${policy}.is_default,
  'objects', (SELECT COALESCE(json_agg(${objectJson('o')} ORDER BY o.id), '[]') FROM image_object o WHERE o.policy_id = ${policy}.id),
  'created_at', ${instantJson(`${policy}.created_at`)})`;

export const policyQuery = `SELECT ${policyJson('p')} AS policy FROM image_policy p WHERE p.id = $1`;

/**
 * What the policy of the team `$1` allows: `$2` objects (null for all) after the first `$3`. No row for a team that is
 * gone, and one with no data where the policy allows no object, which `readPage` cannot tell apart.
 */
export const teamImagesQuery = `
  SELECT (SELECT count(*)::int FROM image_object WHERE policy_id = t.policy_id) AS total,
    (SELECT COALESCE(json_agg(${objectJson('row')} ORDER BY row.id), '[]')
      FROM (SELECT * FROM image_object WHERE policy_id = t.policy_id ORDER BY id LIMIT $2 OFFSET $3) row) AS data
  FROM team t WHERE t.id = $1 AND t.deleted_at IS NULL`;

/** The policy of the team `$1`, as a check needs it. */
export const teamPolicyQuery = `
  SELECT p.is_default, ARRAY(SELECT o.reference FROM image_object o WHERE o.policy_id = p.id) AS references
  FROM team t JOIN image_policy p ON p.id = t.policy_id WHERE t.id = $1 AND t.deleted_at IS NULL`;
