const most = 16;

/**
 * `teams=2,billing=3`: how many processes of a service there are; one where it is not named. Throws for what names no
 * service and no number.
 */
export function readReplicas(text: string, services: readonly string[]): Map<string, number> {
  const replicas = new Map(services.map((service) => [service, 1]));
  for (const entry of text.split(',').filter((each) => each.trim() !== '')) {
    const [, service = '', count = ''] = /^\s*([a-z-]+)=(\d{1,2})\s*$/.exec(entry) ?? [];
    if (!replicas.has(service) || Number(count) < 1 || Number(count) > most) {
      throw new Error(
        `ATOLL_REPLICAS is written service=count, such as teams=2, of ${services.join(', ')}, 1 to ${most}. This is not: ${entry.trim()}`,
      );
    }
    replicas.set(service, Number(count));
  }
  return replicas;
}
