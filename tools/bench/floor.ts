import { connect, type Msg } from '@nats-io/transport-node';
import { fastify, type FastifyInstance } from 'fastify';
import pg from 'pg';

/**
 * The floor under the figures: the same Team by the barest code, no authentication, no validation, no errors, nothing but the query.
 * Run as `floor.js http`, `floor.js gateway` or `floor.js responder`; prints its port, or `ready`.
 */
const teamQuery = {
  name: 'team',
  text: `SELECT json_build_object(
    'id', t.id, 'name', t.name, 'description', t.description, 'created_at', to_char(t.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'status', t.status, 'is_suspended', t.is_suspended,
    'has_pool_subscription', COALESCE((SELECT c.has_pool_subscription FROM teams.team_capacity c WHERE c.team_id = t.id), false),
    'members', (SELECT json_agg(json_build_object(
        'user_id', m.user_id, 'email', u.email, 'name', u.name, 'role', m.role, 'api_key', k.mask, 'api_token', k.mask IS NOT NULL,
        'expiry_date', to_char(k.expiry_date AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'ip_whitelist', COALESCE(k.ip_whitelist, ''))
        ORDER BY m.created_at, m.id)
      FROM teams.membership m JOIN teams."user" u ON u.id = m.user_id
      LEFT JOIN LATERAL (SELECT a.mask, a.expiry_date, a.ip_whitelist FROM teams.api_key a
        WHERE a.team_id = m.team_id AND a.user_id = m.user_id AND a.revoked_at IS NULL AND (a.expiry_date IS NULL OR a.expiry_date > now())
        ORDER BY a.created_at DESC LIMIT 1) k ON true
      WHERE m.team_id = t.id),
    'policy_info', (SELECT json_build_object('policy_id', p.id, 'policy_name', p.name) FROM teams.image_policy p WHERE p.id = t.policy_id),
    'workspaces', (SELECT json_agg(json_build_object('id', w.id, 'name', w.name) ORDER BY w.created_at, w.id) FROM teams.workspace w WHERE w.team_id = t.id)
  ) AS team FROM teams.team t WHERE t.id = $1 AND t.deleted_at IS NULL`,
};

function teamReader(): (id: string) => Promise<unknown> {
  const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
  return async (id) => (await pool.query<{ team: unknown }>({ ...teamQuery, values: [id] })).rows[0]?.team;
}

async function listen(server: FastifyInstance): Promise<void> {
  const address = await server.listen({ port: 0, host: '127.0.0.1' });
  console.log(new URL(address).port);
}

async function serveHttp(): Promise<void> {
  const read = teamReader();
  const server = fastify();
  server.get<{ Params: { id: string } }>('/api/team/:id', (request) => read(request.params.id));
  await listen(server);
}

async function serveGateway(): Promise<void> {
  const nats = await connect({ servers: process.env.NATS_URL ?? '' });
  const server = fastify();
  server.get<{ Params: { id: string } }>('/api/team/:id', async (request) => (await nats.request('floor.team', request.params.id)).json());
  await listen(server);
}

async function answer(): Promise<void> {
  const read = teamReader();
  const nats = await connect({ servers: process.env.NATS_URL ?? '' });
  const respond = async (message: Msg) => message.respond(JSON.stringify(await read(message.string())));
  nats.subscribe('floor.team', { callback: (_error, message) => void respond(message) });
  await nats.flush();
  console.log('ready');
}

const roles: Record<string, () => Promise<void>> = { http: serveHttp, gateway: serveGateway, responder: answer };
await roles[process.argv[2] ?? '']?.();
