import { Body, Controller, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { isPlatformAdmin, Nothing, type CallContext } from '@atoll/contracts';
import { passwords, teamBatches, users } from '@atoll/contracts/teams';
import { AppError, invalidInput } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { ChangesCaller, KeepsNoAnswer } from '../../answers/answers.js';
import { Context } from '../../requests/call-context.js';
import { OldAnswers } from '../http/old-answers.js';
import { atPaths, withFaults } from '../http/old-faults.js';
import { OldLink, OldLinkRequest, OldOnboarding } from './old-onboarding.js';

const fieldsOfAccount = atPaths({
  name: 'user_details.onboard_config.name',
  password: 'user_details.onboard_config.password',
});
const fieldsOfChange = atPaths({ current: 'old_password', new: 'new_password' });

/** How people get an account: by the operator. */
@ApiTags('Members')
@Controller()
export class OldOnboardingController {
  constructor(private readonly rpc: Rpc) {}

  @Post('create-otl')
  @KeepsNoAnswer()
  @ChangesCaller()
  @OldAnswers(
    OldLink,
    'Create a one-time link',
    'Issues a key for a user, who is created and added to the team if needed; a member keeps the role. Requires platform_admin.',
    201,
  )
  async createLink(@Body() asked: OldLinkRequest, @Context() context: CallContext): Promise<OldLink> {
    const { email, send_email_invite, team_id, role_id } = asked;
    const welcome = {
      email,
      ...(team_id && { team_id }),
      ...(role_id && { role: role_id }),
      ...(send_email_invite && { send_mail: true }),
      ...accountOf(asked),
    };
    const { url, expires_at, has_password, has_second_factor } = await this.rpc
      .call(teamBatches.welcome, welcome, context)
      .catch((error: unknown) => {
        throw withFaults(error, fieldsOfAccount);
      });
    return { url, expires_at, should_onboard: !has_password, two_fa_required: has_second_factor };
  }

  @Post('onboard')
  @ChangesCaller()
  @OldAnswers(
    Nothing,
    'Set a password',
    'The first one of any user requires platform_admin; `new_password` in place of the own requires the old one.',
  )
  async onboard(@Body() asked: OldOnboarding, @Context() context: CallContext): Promise<Nothing> {
    if (asked.old_password && asked.new_password) {
      await this.change(asked, { current: asked.old_password, new: asked.new_password }, context);
      return {};
    }
    if (!isPlatformAdmin(context.caller)) throw notYours();
    if (!asked.password) throw required('password');
    const name = nameIn(asked.name);
    await this.rpc.call(teamBatches.onboard, { email: asked.email, password: asked.password, ...name }, context);
    return {};
  }

  private async change(
    { email, name }: OldOnboarding,
    change: { current: string; new: string },
    context: CallContext,
  ): Promise<void> {
    const own = await this.rpc.call(users.profile, {}, context);
    if (own.email !== email) throw notYours();
    await this.rpc.call(passwords.change, change, context).catch((error: unknown) => {
      throw withFaults(error, fieldsOfChange);
    });
    const { name: chosen = own.name } = nameIn(name);
    if (chosen !== own.name) await this.rpc.call(users.updateProfile, { name: chosen }, context);
  }
}

/** The name and first password that the operator has chosen for the person. */
function accountOf({ user_details }: OldLinkRequest): { name?: string; password?: string } {
  const config = user_details?.onboard_config;
  if (!user_details?.pre_onboard) return nameIn(config?.name);
  if (!config) throw required('user_details.onboard_config');
  return { ...nameIn(config.name), password: config.password };
}

function nameIn(name: string | null | undefined): { name?: string } {
  const given = (name ?? '').trim();
  return given === '' ? {} : { name: given };
}

/** The same for every address, so that callers cannot find out which ones exist. */
function notYours(): AppError {
  return new AppError(
    'unauthenticated',
    'This needs the key of the operator or, to change your own password, your own key or session.',
  );
}

function required(path: string): AppError {
  return invalidInput([{ path, code: 'isDefined', message: `${path} is required` }]);
}
