import { type CallContext, type Nothing } from '@atoll/contracts';
import {
  passkeys,
  type BeginPasskey,
  type NewPasskey,
  type OpenedSession,
  type Passkey,
  type PasskeyAnswerFrom,
  type PasskeyList,
  type PasskeyOptions,
  type PasskeyPath,
} from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { PasskeysService } from './passkey.service.js';

@Controller()
export class PasskeysController implements Handlers<typeof passkeys> {
  constructor(private readonly passkeys: PasskeysService) {}

  @Handle(passkeys.list)
  list(_input: Nothing, context: CallContext): Promise<PasskeyList> {
    return this.passkeys.list(context);
  }

  @Handle(passkeys.begin)
  begin(_input: BeginPasskey, context: CallContext): Promise<PasskeyOptions> {
    return this.passkeys.begin(context);
  }

  @Handle(passkeys.finish)
  finish(input: NewPasskey, context: CallContext): Promise<Passkey> {
    return this.passkeys.finish(input, context);
  }

  @Handle(passkeys.remove)
  remove(input: PasskeyPath, context: CallContext): Promise<Nothing> {
    return this.passkeys.remove(input, context);
  }

  @Handle(passkeys.beginLogIn)
  beginLogIn(_input: Nothing, context: CallContext): Promise<PasskeyOptions> {
    return this.passkeys.beginLogIn(context);
  }

  @Handle(passkeys.logIn)
  logIn(input: PasskeyAnswerFrom, context: CallContext): Promise<OpenedSession> {
    return this.passkeys.logIn(input, context);
  }
}
