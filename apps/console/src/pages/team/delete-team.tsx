import { useNavigate } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { Problem } from '../../api/problem.js';
import { Button } from '../../parts/button.js';
import { Field, Toggle } from '../../parts/fields.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { Card } from '../../parts/page.js';

export function DeleteTeam({ team: { id, name } }: { team: Schemas['Team'] }) {
  const navigate = useNavigate();
  return (
    <Card title="Delete the team">
      <div className="actions">
        <p className="hint">Its members lose it at once; its billing history stays for the operator.</p>
        <FormDialog
          title="Delete the team"
          trigger={<Button kind="danger">Delete the team</Button>}
          initial={{ typed: '', force: false }}
          submit="Delete"
          kind="danger"
          action={async ({ typed, force }) => {
            if (typed !== name)
              throw new Problem(
                400,
                'console',
                'The name does not match. Type the name of the team to delete it.',
                null,
              );
            return answerOf(api.DELETE('/api/team/{team_id}', { params: { path: { team_id: id }, query: { force } } }));
          }}
          invalidates={['profile', 'teams']}
          done={(_, deleting) =>
            deleting ? 'The team is being deleted; what it holds is ended first.' : 'The team was deleted.'
          }
          onDone={() => void navigate({ to: '/' })}
        >
          {({ values, set, field }) => (
            <>
              <Field label={`Type “${name}” to delete it`} {...field('typed')} isRequired />
              <Toggle label="End what it holds first" isOn={values.force} onChange={(force) => set({ force })} />
            </>
          )}
        </FormDialog>
      </div>
    </Card>
  );
}
