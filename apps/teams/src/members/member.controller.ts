import { type CallContext, type Nothing } from '@atoll/contracts';
import {
  members,
  type AddMember,
  type ChangeRole,
  type IssueMemberKey,
  type ListMembers,
  type MemberPage,
  type MemberPath,
  type TeamMember,
} from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { MembersService } from './member.service.js';

@Controller()
export class MembersController implements Handlers<typeof members> {
  constructor(private readonly members: MembersService) {}

  @Handle(members.list)
  list(input: ListMembers, context: CallContext): Promise<MemberPage> {
    return this.members.list(input, context);
  }

  @Handle(members.add)
  add(input: AddMember, context: CallContext): Promise<TeamMember> {
    return this.members.add(input, context);
  }

  @Handle(members.changeRole)
  changeRole(input: ChangeRole, context: CallContext): Promise<TeamMember> {
    return this.members.changeRole(input, context);
  }

  @Handle(members.remove)
  remove(input: MemberPath, context: CallContext): Promise<Nothing> {
    return this.members.remove(input, context);
  }

  @Handle(members.issueKey)
  issueKey(input: IssueMemberKey, context: CallContext): Promise<TeamMember> {
    return this.members.issueKey(input, context);
  }

  @Handle(members.revokeKey)
  revokeKey(input: MemberPath, context: CallContext): Promise<Nothing> {
    return this.members.revokeKey(input, context);
  }
}
