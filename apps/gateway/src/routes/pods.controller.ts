import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import {
  CreatePod,
  ListPods,
  OpenTerminalBody,
  Pod,
  PodAction,
  PodPage,
  PodPath,
  pods,
  terminals,
  TerminalTicket,
  UpdatePodBody,
} from '@atoll/contracts/pods';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage, KeepsNoAnswer, Refuses } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Pods')
@Controller('pods')
export class PodsController {
  constructor(private readonly rpc: Rpc) {}

  @Post()
  @Answers(
    202,
    Pod,
    'Create a pod',
    'Creates a pod on a subscription and starts it. It is `pending` while its subscription is not active. Requires team_owner, team_admin or member.',
  )
  @Refuses('insufficient_capacity')
  createPod(@Body() body: CreatePod, @Context() context: CallContext): Promise<Pod> {
    return this.rpc.call(pods.create, body, context);
  }

  @Get()
  @AnswersPage(
    PodPage,
    1,
    'List the pods of a team',
    'Returns pods, of one subscription or of all. Any member of the team may read them.',
  )
  listPods(@Query() query: ListPods, @Context() context: CallContext): Promise<PodPage> {
    return this.rpc.call(pods.list, query, context);
  }

  @Post('action')
  @Answers(
    202,
    Pod,
    'Act on a pod',
    'Starts, stops or restarts a pod. Starting a running pod or stopping a stopped one changes nothing. Requires team_owner, team_admin or member.',
  )
  @Refuses('insufficient_capacity')
  actOnPod(@Body() body: PodAction, @Context() context: CallContext): Promise<Pod> {
    return this.rpc.call(pods.act, body, context);
  }

  @Get(':pod_name')
  @Answers(200, Pod, 'Get a pod', 'Returns a pod. Any member of its team may read it.')
  getPod(@Param() path: PodPath, @Context() context: CallContext): Promise<Pod> {
    return this.rpc.call(pods.get, path, context);
  }

  @Post(':pod_name/terminal')
  @KeepsNoAnswer()
  @Answers(
    201,
    TerminalTicket,
    'Open a terminal in a pod',
    'Returns a ticket for one WebSocket at this path, to be offered as a subprotocol beside `atoll.v1`. Binary frames are input and output of a shell in the pod; a text frame `{"columns": 120, "rows": 40}` resizes it. Like an SSH session, it ends with the pod, or when its user may no longer use the pod. Requires team_owner, team_admin or member; an operator needs one of these roles too.',
  )
  openTerminal(
    @Param() path: PodPath,
    @Body() body: OpenTerminalBody,
    @Context() context: CallContext,
  ): Promise<TerminalTicket> {
    return this.rpc.call(terminals.open, { ...path, ...body }, context);
  }

  @Put(':pod_name')
  @Answers(
    200,
    Pod,
    'Update a pod',
    'Changes the shown name, the image or the mounts of a pod; image and mounts take effect with its next run. Requires team_owner, team_admin or member.',
  )
  updatePod(@Param() path: PodPath, @Body() body: UpdatePodBody, @Context() context: CallContext): Promise<Pod> {
    return this.rpc.call(pods.update, { ...path, ...body }, context);
  }

  @Delete(':pod_name')
  @Answers(
    202,
    Pod,
    'Delete a pod',
    'Stops a pod and deletes it with its exposed services. Requires team_owner, team_admin or member.',
  )
  deletePod(@Param() path: PodPath, @Context() context: CallContext): Promise<Pod> {
    return this.rpc.call(pods.delete, path, context);
  }
}
