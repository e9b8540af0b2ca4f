import { answerOf, api, type Schemas } from '../../api/client.js';
import { Act } from '../../parts/dialogs.js';
import { Ask } from '../../parts/form-dialog.js';

const invalidates = ['nodes'];

/** What can be done with a node in its state. */
export function NodeActions({ node: { node_id, node_name, status } }: { node: Schemas['GpuNode'] }) {
  const params = { params: { path: { node_id } } };
  return (
    <div className="actions">
      {(status === 'registered' || status === 'init_failed') && (
        <Act
          label="Initialise"
          kind="primary"
          action={() => answerOf(api.POST('/api/gpuaas/node/{node_id}/initialise', params))}
          invalidates={invalidates}
          done={`${node_name} is being initialised.`}
        />
      )}
      {status === 'cordoned' ? (
        <Act
          label="Uncordon"
          action={() => answerOf(api.POST('/api/gpuaas/node/{node_id}/uncordon', params))}
          invalidates={invalidates}
          done={`${node_name} takes work again.`}
        />
      ) : (
        <Act
          label="Cordon"
          action={() => answerOf(api.POST('/api/gpuaas/node/{node_id}/cordon', params))}
          invalidates={invalidates}
          done={`${node_name} takes nothing new.`}
        />
      )}
      <Ask
        title={`Reset ${node_name}`}
        question={
          <p>
            Its GPUs are reset to their state at the first start. This is refused while a subscription holds a part of
            the node.
          </p>
        }
        submit="Reset"
        action={() => answerOf(api.POST('/api/gpuaas/node/{node_id}/reset', params))}
        invalidates={invalidates}
        done={`${node_name} is being reset.`}
      />
    </div>
  );
}
