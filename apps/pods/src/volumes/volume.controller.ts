import { type CallContext } from '@atoll/contracts';
import {
  sharedVolumes,
  type CreateSharedVolume,
  type ListSharedVolumes,
  type ResizeSharedVolume,
  type SharedVolume,
  type SharedVolumePage,
  type SharedVolumePath,
} from '@atoll/contracts/pods';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { VolumesService } from './volume.service.js';

@Controller()
export class VolumesController implements Handlers<typeof sharedVolumes> {
  constructor(private readonly volumes: VolumesService) {}

  @Handle(sharedVolumes.create)
  create(input: CreateSharedVolume, context: CallContext): Promise<SharedVolume> {
    return this.volumes.create(input, context);
  }

  @Handle(sharedVolumes.list)
  list(input: ListSharedVolumes, context: CallContext): Promise<SharedVolumePage> {
    return this.volumes.list(input, context);
  }

  @Handle(sharedVolumes.get)
  get(input: SharedVolumePath, context: CallContext): Promise<SharedVolume> {
    return this.volumes.get(input, context);
  }

  @Handle(sharedVolumes.resize)
  resize(input: ResizeSharedVolume, context: CallContext): Promise<SharedVolume> {
    return this.volumes.resize(input, context);
  }

  @Handle(sharedVolumes.delete)
  delete(input: SharedVolumePath, context: CallContext): Promise<SharedVolume> {
    return this.volumes.delete(input, context);
  }
}
