import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import { policiesQuery } from '../../api/queries.js';
import { Button } from '../../parts/button.js';
import { ActionForm, Ask, ModalBox } from '../../parts/dialogs.js';
import { Field } from '../../parts/fields.js';
import { Card, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';

type Policy = Schemas['ImagePolicy'];

export function PoliciesPage() {
  const policies = useQuery(policiesQuery);
  return (
    <Page
      title="Image policies"
      lead="Which images a team may run. A team has one policy; the default one allows every image."
      actions={<EditPolicy />}
    >
      <Loaded query={policies}>
        {({ data }) => (
          <div className="stack">
            {data.map((policy) => (
              <PolicyCard key={policy.id} policy={policy} />
            ))}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function PolicyCard({ policy }: { policy: Policy }) {
  return (
    <Card
      title={policy.name}
      actions={
        !policy.is_default && (
          <>
            <AssignPolicy policy={policy} />
            <EditPolicy policy={policy} />
            <Ask
              title="Delete the policy"
              question={<p className="given">“{policy.name}” can be deleted while no team has it.</p>}
              trigger={
                <Button isSmall kind="danger">
                  Delete
                </Button>
              }
              submit="Delete"
              action={() => answerOf(api.DELETE('/api/policy/image/{id}', { params: { path: { id: policy.id } } }))}
              invalidates={['policies']}
              done="The policy was deleted."
            />
          </>
        )
      }
    >
      <p className="hint given">{policy.description}</p>
      {policy.objects.length === 0 ? (
        <Empty title={policy.is_default ? 'Every image is allowed' : 'No image is allowed'} />
      ) : (
        <ul className="list">
          {policy.objects.map(({ id, name, reference }) => (
            <li key={id}>
              <span className="given">{name}</span>
              <code className="given">{reference}</code>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

/** Images as lines, `name reference`. */
function objectsOf(text: string): { name: string; reference: string }[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter(Boolean)
    .map((reference) => ({ name: /([^/:@]+)(?:[:@][^/]*)?$/.exec(reference)?.[1] ?? reference, reference }));
}

function EditPolicy({ policy }: { policy?: Policy }) {
  const [header] = useState(idempotencyKey);
  const [name, setName] = useState(policy?.name ?? '');
  const [description, setDescription] = useState(policy?.description ?? '');
  const [images, setImages] = useState(policy?.objects.map(({ reference }) => reference).join(', ') ?? '');
  const body = { name, description, objects: objectsOf(images) };
  const save = () =>
    policy
      ? answerOf(api.PUT('/api/policy/image/{id}', { params: { path: { id: policy.id } }, body }))
      : answerOf(api.POST('/api/policy/image', { params: { header }, body }));
  return (
    <ModalBox
      title={policy ? 'Edit the policy' : 'Create a policy'}
      trigger={policy ? <Button isSmall>Edit</Button> : <Button kind="primary">Create a policy</Button>}
    >
      {(close) => (
        <ActionForm submit="Save" action={save} invalidates={['policies']} done="The policy was saved." onDone={close} onCancel={close}>
          {(problem) => (
            <>
              <Field label="Name" value={name} onChange={setName} error={problem?.fields.name} isRequired />
              <Field label="Description" value={description} onChange={setDescription} error={problem?.fields.description} />
              <Field
                label="Images"
                value={images}
                onChange={setImages}
                hint="References, with commas between them."
                error={problem?.fields.objects}
              />
            </>
          )}
        </ActionForm>
      )}
    </ModalBox>
  );
}

function AssignPolicy({ policy }: { policy: Policy }) {
  const [team_id, setTeam] = useState('');
  const assign = () => answerOf(api.POST('/api/policy/image/{id}/assign-team', { params: { path: { id: policy.id } }, body: { team_id } }));
  return (
    <ModalBox title={`Give “${policy.name}” to a team`} trigger={<Button isSmall>Give to a team</Button>}>
      {(close) => (
        <ActionForm
          submit="Give"
          action={assign}
          invalidates={['policies', 'team', 'teams']}
          done="The team has the policy."
          onDone={close}
          onCancel={close}
        >
          {(problem) => <Field label="Team id" value={team_id} onChange={setTeam} error={problem?.fields.team_id} isRequired />}
        </ActionForm>
      )}
    </ModalBox>
  );
}
