import { Controller, Get, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { failuresOf, version, type ReadinessCheck } from '@atoll/service';
import { Public } from '../authentication/public.js';
import { sendProblem } from '../errors/send-problem.js';
import { GatewaySettings } from '../gateway-options.js';
import { Draining } from './draining.js';
import { PepperCheck } from './pepper-check.js';

/** For whoever runs the platform; outside /api, without credentials, not counted. */
@ApiExcludeController()
@Controller()
export class HealthController {
  readonly #checks: readonly ReadinessCheck[];

  constructor(
    rpc: Rpc,
    draining: Draining,
    pepper: PepperCheck,
    private readonly settings: GatewaySettings,
  ) {
    const bus = (): string | null => {
      const { ready, reason } = rpc.status();
      return ready ? null : (reason ?? 'the bus is not ready');
    };
    this.#checks = [
      { name: 'gateway', check: () => (draining.begun ? 'draining' : null) },
      { name: 'bus', check: bus },
      { name: 'key pepper', check: () => pepper.reason() },
      ...settings.readinessChecks,
    ];
  }

  @Get('livez')
  @Public()
  live(): object {
    return { status: 'live', version };
  }

  @Get('readyz')
  @Public()
  async ready(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const reasons = await failuresOf(this.#checks);
    if (reasons.length === 0) {
      await reply.send({ status: 'ready', reasons });
      return;
    }
    const words = reasons.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
    sendProblem(request, reply, new AppError('unavailable', `Not ready: ${words}.`, { retryAfterSeconds: 1 }), {
      reasons,
    });
  }

  @Get('metrics')
  @Public()
  async measured(@Res() reply: FastifyReply): Promise<void> {
    const { metrics } = this.settings;
    await reply.type(metrics.contentType).send(await metrics.metrics());
  }
}
