import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { Button } from '../../parts/button.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Field, Toggle } from '../../parts/fields.js';
import { Card } from '../../parts/page.js';
import { say } from '../../parts/toasts.js';

export function DeleteTeam({ team }: { team: Schemas['Team'] }) {
  const navigate = useNavigate();
  const [typed, setTyped] = useState('');
  const [force, setForce] = useState(false);
  const remove = async () => {
    if (typed !== team.name) throw new Error('Type the name of the team to delete it.');
    return answerOf(api.DELETE('/api/team/{team_id}', { params: { path: { team_id: team.id }, query: { force } } }));
  };
  return (
    <Card title="Delete the team">
      <div className="actions">
        <p className="hint">Its members lose it at once; its billing history stays for the operator.</p>
        <ModalBox title="Delete the team" trigger={<Button kind="danger">Delete the team</Button>}>
          {(close) => (
            <ActionForm
              submit="Delete"
              kind="danger"
              action={remove}
              invalidates={['profile', 'teams']}
              onDone={(deleting) => {
                close();
                say(deleting ? 'The team is being deleted; what it holds is ended first.' : 'The team was deleted.');
                void navigate({ to: '/' });
              }}
              onCancel={close}
            >
              {() => (
                <>
                  <Field label={`Type “${team.name}” to delete it`} value={typed} onChange={setTyped} isRequired />
                  <Toggle label="End what it holds first" isOn={force} onChange={setForce} />
                </>
              )}
            </ActionForm>
          )}
        </ModalBox>
      </div>
    </Card>
  );
}
