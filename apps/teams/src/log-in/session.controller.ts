import { type CallContext, type Nothing } from '@atoll/contracts';
import {
  sessions,
  type EndedSession,
  type LogInFrom,
  type OfUser,
  type OpenedSession,
  type RefreshFrom,
  type RefreshToken,
  type SessionCredential,
  type SessionKeys,
  type SessionList,
  type SessionPath,
} from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { LogInService } from './log-in.service.js';
import { SessionsService } from '../sessions/session.service.js';

@Controller()
export class SessionsController implements Handlers<typeof sessions> {
  constructor(
    private readonly sessions: SessionsService,
    private readonly logIns: LogInService,
  ) {}

  @Handle(sessions.logIn)
  logIn(input: LogInFrom, context: CallContext): Promise<OpenedSession> {
    return this.logIns.logIn(input, context);
  }

  @Handle(sessions.refresh)
  refresh(input: RefreshFrom, context: CallContext): Promise<OpenedSession> {
    return this.sessions.refresh(input, context);
  }

  @Handle(sessions.logOut)
  logOut(input: RefreshToken, context: CallContext): Promise<EndedSession> {
    return this.sessions.logOut(input, context);
  }

  @Handle(sessions.keys)
  keys(_input: Nothing, context: CallContext): Promise<SessionKeys> {
    return this.sessions.keys(context);
  }

  @Handle(sessions.verify)
  verify(input: SessionPath, context: CallContext): Promise<SessionCredential> {
    return this.sessions.verify(input, context);
  }

  @Handle(sessions.list)
  list(_input: Nothing, context: CallContext): Promise<SessionList> {
    return this.sessions.list(context);
  }

  @Handle(sessions.end)
  end(input: SessionPath, context: CallContext): Promise<Nothing> {
    return this.sessions.end(input, context);
  }

  @Handle(sessions.endAll)
  endAll(input: OfUser, context: CallContext): Promise<Nothing> {
    return this.sessions.endAll(input, context);
  }
}
