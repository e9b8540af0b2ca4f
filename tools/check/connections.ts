/** Connections that PostgreSQL keeps for superusers (`superuser_reserved_connections`). */
const reserved = 3;
/** Connections of a process beside those that the documentation lists by service: for `/readyz`. */
const ofReadiness = 1;

/** A service and the connections of its pools. */
export interface Pools {
  name: string;
  connections: number;
}

/**
 * Where the PostgreSQL of docker-compose.yml accepts fewer connections than the commands at the top of the file need;
 * and where docs/operations.md lists fewer for a service than its pools have. A service that it does not list needs
 * those of its pools. `command`: of the container of PostgreSQL.
 */
export function missingConnections(
  services: readonly Pools[],
  command: readonly string[],
  compose: string,
  documentation: string,
): string[] {
  const listed = /Each process holds at most this many connections to PostgreSQL: ([^.]+)\./.exec(documentation)?.[1];
  const documented = ({ name, connections }: Pools) =>
    Number(new RegExp(`\\b${name} (\\d+)`).exec(listed ?? '')?.[1] ?? connections);
  const replicas = (name: string) =>
    Math.max(1, ...[...compose.matchAll(new RegExp(`--scale ${name}=(\\d+)`, 'g'))].map(([, count]) => Number(count)));
  const needed = services.reduce(
    (sum, service) => sum + replicas(service.name) * (documented(service) + ofReadiness),
    reserved,
  );
  const accepted = Number(/max_connections=(\d+)/.exec(command.join(' '))?.[1] ?? 100);
  return [
    ...services
      .filter((service) => documented(service) < service.connections)
      .map(
        (service) =>
          `docs/operations.md: ${documented(service)} connections of ${service.name} are listed, and its pools have ${service.connections}`,
      ),
    ...(accepted < needed
      ? [`docker-compose.yml: postgres accepts ${accepted} connections (max_connections), and ${needed} are needed`]
      : []),
  ];
}
