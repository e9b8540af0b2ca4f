import { type CallContext, type Nothing } from '@atoll/contracts';
import {
  secondFactors,
  type NewSecondFactor,
  type OpenedSession,
  type RecoveryCodes,
  type SecondFactorCode,
  type SecondStepFrom,
} from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { SecondFactorsService } from './second-factor.service.js';

@Controller()
export class SecondFactorsController implements Handlers<typeof secondFactors> {
  constructor(private readonly secondFactors: SecondFactorsService) {}

  @Handle(secondFactors.logIn)
  logIn(input: SecondStepFrom, context: CallContext): Promise<OpenedSession> {
    return this.secondFactors.logIn(input, context);
  }

  @Handle(secondFactors.begin)
  begin(_input: Nothing, context: CallContext): Promise<NewSecondFactor> {
    return this.secondFactors.begin(context);
  }

  @Handle(secondFactors.confirm)
  confirm(input: SecondFactorCode, context: CallContext): Promise<RecoveryCodes> {
    return this.secondFactors.confirm(input, context);
  }

  @Handle(secondFactors.remove)
  remove(input: SecondFactorCode, context: CallContext): Promise<Nothing> {
    return this.secondFactors.remove(input, context);
  }
}
