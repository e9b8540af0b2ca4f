import { answerOf, api } from '../api/client.js';
import { Button } from '../parts/button.js';
import { Field } from '../parts/fields.js';
import { FormDialog } from '../parts/form-dialog.js';

/** A team whose owner is who creates it: for everybody but who is logged in with a key of one team. */
export function CreateOwnTeam() {
  return (
    <FormDialog
      title="Create a team"
      trigger={<Button>Create a team</Button>}
      initial={{ name: '' }}
      submit="Create"
      action={(body, header) => answerOf(api.POST('/api/team', { params: { header }, body }))}
      invalidates={['teams', 'profile']}
      done="The team was created."
    >
      {({ field }) => <Field label="Name" {...field('name')} isRequired />}
    </FormDialog>
  );
}
