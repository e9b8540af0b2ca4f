import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { GatewayOptions } from '../../gateway-options.js';
import {
  call,
  startGateway,
  type CallOptions,
  type GatewayUnderTest,
  type Reply,
} from '../../testing/gateway-fixture.js';
import { createCompat } from '../create-compat.js';
import type { OldError } from '../http/old-error.js';
import { AnswerCheck } from './answer-check.js';

export interface CompatUnderTest {
  gateway: GatewayUnderTest;
  app: NestFastifyApplication;
  document: OpenAPIObject;
  /** Calls the mount. Throws where the answer is not as its OpenAPI document declares it. */
  call<Body = OldError>(method: string, url: string, options?: CallOptions): Promise<Reply<Body>>;
  close(): Promise<void>;
}

/** The compatibility mount of a gateway with fake services behind it. */
export async function startCompat(options: Partial<GatewayOptions> = {}): Promise<CompatUnderTest> {
  const gateway = await startGateway(options);
  const app = await createCompat(gateway.app);
  const { body: document } = await call<OpenAPIObject>(app, 'GET', '/api/openapi.json');
  const check = new AnswerCheck(document);
  return {
    gateway,
    app,
    document,
    call: async <Body>(method: string, url: string, callOptions?: CallOptions) => {
      const reply = await call<Body>(app, method, url, callOptions);
      const fault = check.fault(method, url, reply.status, reply.body);
      if (fault !== null) throw new Error(`${fault} in ${JSON.stringify(reply.body)}`);
      return reply;
    },
    close: async () => {
      await Promise.all([app.close(), gateway.close()]);
    },
  };
}
