import { connect, type Msg } from '@nats-io/transport-node';
import { fastify, type FastifyInstance } from 'fastify';
import pg from 'pg';

/**
 * The floor under the figures: the same Team by the barest code, no authentication, no validation, no errors, nothing
 * but the product's query, which makes the JSON. Run as `floor.js http`, `floor.js gateway` or `floor.js responder`;
 * prints its port, or `ready`.
 */
interface BuiltTeams {
  readonly teamTextQuery: string;
}
const { teamTextQuery } = (await import(
  new URL('../../apps/teams/src/teams/team-query.js', import.meta.url).href
)) as BuiltTeams;
const json = 'application/json';
const prepared = { name: 'team', text: teamTextQuery };

function teamReader(): (id: string) => Promise<string> {
  const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10, options: '-c search_path=teams' });
  return async (id) => (await pool.query<{ team: string }>({ ...prepared, values: [id] })).rows[0]?.team ?? 'null';
}

async function listen(server: FastifyInstance): Promise<void> {
  const address = await server.listen({ port: 0, host: '127.0.0.1' });
  console.log(new URL(address).port);
}

async function serveHttp(): Promise<void> {
  const read = teamReader();
  const server = fastify();
  server.get<{ Params: { id: string } }>('/api/team/:id', async (request, reply) =>
    reply.type(json).send(await read(request.params.id)),
  );
  await listen(server);
}

async function serveGateway(): Promise<void> {
  const nats = await connect({ servers: process.env.NATS_URL ?? '', noAsyncTraces: true });
  const server = fastify();
  server.get<{ Params: { id: string } }>('/api/team/:id', async (request, reply) =>
    reply.type(json).send((await nats.request('floor.team', request.params.id)).string()),
  );
  await listen(server);
}

async function answer(): Promise<void> {
  const read = teamReader();
  const nats = await connect({ servers: process.env.NATS_URL ?? '', noAsyncTraces: true });
  const respond = async (message: Msg) => message.respond(await read(message.string()));
  nats.subscribe('floor.team', { callback: (_error, message) => void respond(message) });
  await nats.flush();
  console.log('ready');
}

const roles: Record<string, () => Promise<void>> = { http: serveHttp, gateway: serveGateway, responder: answer };
await roles[process.argv[2] ?? '']?.();
