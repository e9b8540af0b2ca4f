/** Ends all connections to a database, as a failover does; last the one that `query` uses. */
export async function endConnections(query: (sql: string) => Promise<unknown>): Promise<void> {
  await query(
    'SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
  );
  const isEnded = await query('SELECT pg_terminate_backend(pg_backend_pid())').then(
    () => false,
    () => true,
  );
  if (!isEnded) throw new Error('The last connection was not ended.');
}
