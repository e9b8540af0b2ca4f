/**
 * Statement for the GPU services that rows of a table belong to, of those that fulfil a condition: a step along an
 * index that has this condition and begins with the GPU service for each of them, however many rows there are.
 */
export const clustersOf = (table: string, condition: string): string => `WITH RECURSIVE cluster AS (
    (SELECT gpuaas_id FROM ${table} WHERE ${condition} ORDER BY gpuaas_id LIMIT 1)
    UNION ALL
    SELECT next.gpuaas_id FROM cluster CROSS JOIN LATERAL (
      SELECT later.gpuaas_id FROM ${table} later WHERE ${condition} AND later.gpuaas_id > cluster.gpuaas_id ORDER BY later.gpuaas_id LIMIT 1
    ) next
  )
  SELECT gpuaas_id FROM cluster`;
