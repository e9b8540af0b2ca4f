import { useQuery } from '@tanstack/react-query';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { policiesQuery } from '../../api/queries.js';
import { Button } from '../../parts/button.js';
import { sendChanges } from '../../parts/changes.js';
import { Field } from '../../parts/fields.js';
import { Ask, FormDialog } from '../../parts/form-dialog.js';
import { Listing } from '../../parts/listing.js';
import { Card, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { imagesOf } from './policy-images.js';

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
          <Listing
            label="Image policies"
            isInAddress
            rows={data}
            keyOf={({ id }) => id}
            findBy={({ name, description, objects }) => [
              name,
              description,
              ...objects.map(({ reference }) => reference),
            ]}
          >
            {({ rows }) => (
              <div className="stack">
                {rows.map((policy) => (
                  <PolicyCard key={policy.id} policy={policy} />
                ))}
              </div>
            )}
          </Listing>
        )}
      </Loaded>
    </Page>
  );
}

function PolicyCard({ policy }: { policy: Policy }) {
  return (
    <Card
      title={policy.name}
      isRow
      actions={
        !policy.is_default && (
          <>
            <AssignPolicy policy={policy} />
            <EditPolicy policy={policy} />
            <Ask
              title="Delete the policy"
              question={<p className="given">“{policy.name}” can be deleted while no team has it.</p>}
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

function EditPolicy({ policy }: { policy?: Policy }) {
  const images = policy?.objects.map(({ reference }) => reference).join(', ') ?? '';
  return (
    <FormDialog
      title={policy ? 'Edit the policy' : 'Create a policy'}
      trigger={policy ? <Button isSmall>Edit</Button> : <Button kind="primary">Create a policy</Button>}
      initial={{ name: policy?.name ?? '', description: policy?.description ?? '', images }}
      keptAs={`policy ${policy?.id ?? 'new'}`}
      submit="Save"
      action={async (values, header, touched) => {
        const { images: references, ...rest } = values;
        const objects = imagesOf(references, policy?.objects ?? []);
        if (!policy) {
          await answerOf(api.POST('/api/policy/image', { params: { header }, body: { ...rest, objects } }));
          return;
        }
        // Objects that are sent replace all others, also those that were added since this form was opened.
        await sendChanges(values, touched, ({ images: changed, ...others }) => {
          const body = { ...others, ...(changed !== undefined && { objects }) };
          return answerOf(api.PUT('/api/policy/image/{id}', { params: { path: { id: policy.id } }, body }));
        });
      }}
      invalidates={['policies']}
      done="The policy was saved."
    >
      {({ field }) => (
        <>
          <Field label="Name" {...field('name')} isRequired />
          <Field label="Description" {...field('description')} />
          <Field label="Images" {...field('images', 'objects')} hint="References, separated by commas." />
        </>
      )}
    </FormDialog>
  );
}

function AssignPolicy({ policy: { id, name } }: { policy: Policy }) {
  return (
    <FormDialog
      title={`Give “${name}” to a team`}
      trigger={<Button isSmall>Give to a team</Button>}
      initial={{ team_id: '' }}
      submit="Give"
      action={(body) => answerOf(api.POST('/api/policy/image/{id}/assign-team', { params: { path: { id } }, body }))}
      invalidates={['policies', 'team', 'teams']}
      done="The team has the policy."
    >
      {({ field }) => <Field label="Team id" {...field('team_id')} isRequired />}
    </FormDialog>
  );
}
