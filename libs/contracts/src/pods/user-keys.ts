import { ArrayMaxSize, IsArray, IsInt, IsOptional, Matches, Min } from 'class-validator';
import { event } from '../contract.js';
import { Revision } from '../fields.js';
import { Uuid } from '../id-fields.js';

export class UserKeysChanged {
  @Uuid()
  user_id!: string;

  @Revision()
  revision!: number;

  /** All SSH keys of the user, each as a line of `authorized_keys` without options and comment. */
  @IsArray()
  @ArrayMaxSize(1_000)
  @Matches(/^[a-z0-9-]+ [A-Za-z0-9+/=]{1,16000}$/, { each: true })
  keys!: string[];

  /** Which of them, counted from 1, were added without a second factor. */
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(1_000)
  @IsInt({ each: true })
  @Min(1, { each: true })
  without_factor?: number[];
}
/** The SSH keys of a user have changed. Bare-metal hosts and VMs of their teams let in who holds one of them. */
export const userKeysChanged = event('pods.user_keys_changed', UserKeysChanged);
