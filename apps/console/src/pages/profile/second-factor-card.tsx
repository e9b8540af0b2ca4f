import { useEffect, useState } from 'react';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { queryClient } from '../../api/query-client.js';
import { Button } from '../../parts/button.js';
import { Chip } from '../../parts/chip.js';
import { Copy } from '../../parts/copy.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Field } from '../../parts/fields.js';
import { Card } from '../../parts/page.js';
import { Secret } from '../../parts/secret.js';

/** An authenticator app, and the codes that stand in for it. */
export function SecondFactorCard({ factor }: { factor: Schemas['UserSecondFactor'] }) {
  const { is_set: isSet, recovery_codes: left } = factor;
  return (
    <Card
      title="Second factor"
      actions={
        isSet ? (
          <ModalBox title="Remove the authenticator" trigger={<Button kind="danger">Remove</Button>}>
            {(close) => <Remove close={close} />}
          </ModalBox>
        ) : (
          <ModalBox title="Set up an authenticator" trigger={<Button>Set up</Button>}>
            {(close) => <SetUp close={close} />}
          </ModalBox>
        )
      }
    >
      <p>
        <Chip state={isSet ? 'set up' : 'not set up'} as={isSet ? 'active' : 'registered'} />
      </p>
      <p className="hint">
        {isSet
          ? `A log-in by password also takes a code of your app. ${left === 1 ? '1 recovery code is' : `${left} recovery codes are`} left for when the app is lost.`
          : 'With an authenticator app, a log-in by password also takes a code of six digits.'}
      </p>
    </Card>
  );
}

function SetUp({ close }: { close: () => void }) {
  const [begun, setBegun] = useState<Schemas['NewSecondFactor'] | null>(null);
  const [recovery, setRecovery] = useState<readonly string[] | null>(null);
  if (recovery) return <RecoveryCodes codes={recovery} close={close} />;
  if (begun) return <Confirm factor={begun} onDone={setRecovery} close={close} />;
  const begin = () => answerOf(api.POST('/api/user/second-factor/begin', {}));
  return (
    <ActionForm submit="Begin" action={begin} invalidates={[]} onDone={setBegun} onCancel={close}>
      {() => <p>You get a secret for your app, then enter a code that the app shows.</p>}
    </ActionForm>
  );
}

interface ConfirmProps {
  factor: Schemas['NewSecondFactor'];
  onDone: (codes: readonly string[]) => void;
  close: () => void;
}

function Confirm({ factor: { secret, uri }, onDone, close }: ConfirmProps) {
  const [code, setCode] = useState('');
  const confirm = () => answerOf(api.POST('/api/user/second-factor/confirm', { body: { code: code.trim() } }));
  return (
    <ActionForm
      submit="Confirm"
      action={confirm}
      invalidates={['sessions']}
      done="The second factor is set up."
      onDone={({ recovery_codes }) => onDone(recovery_codes)}
      onCancel={close}
    >
      {(problem) => (
        <>
          <Secret label="The secret for your app" value={secret} />
          <p>
            <a href={uri}>Open it in an app of this device</a>
          </p>
          <CodeField code={code} onChange={setCode} error={problem?.fields.code} />
        </>
      )}
    </ActionForm>
  );
}

function RecoveryCodes({ codes, close }: { codes: readonly string[]; close: () => void }) {
  // However it is closed, and not before: the card that has this dialog is another one then.
  useEffect(() => () => void queryClient.invalidateQueries({ queryKey: ['profile'] }), []);
  return (
    <>
      <p>Each of these codes stands in for the app once. They are shown this once: keep them before you close this.</p>
      <ul className="columns">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <div className="dialog-actions">
        <Copy name="The codes" label="Copy them" value={codes.join('\n')} />
        <Button kind="primary" onPress={close}>
          Done
        </Button>
      </div>
    </>
  );
}

function Remove({ close }: { close: () => void }) {
  const [code, setCode] = useState('');
  const remove = () => answerOf(api.DELETE('/api/user/second-factor', { body: { code: code.trim() } }));
  return (
    <ActionForm
      submit="Remove"
      kind="danger"
      action={remove}
      invalidates={['profile']}
      done="The second factor was removed."
      onDone={close}
      onCancel={close}
    >
      {(problem) => <CodeField code={code} onChange={setCode} error={problem?.fields.code} />}
    </ActionForm>
  );
}

function CodeField({ code, onChange, error }: { code: string; onChange: (code: string) => void; error: string | undefined }) {
  return (
    <Field
      label="Code"
      value={code}
      onChange={onChange}
      autoComplete="one-time-code"
      hint="Six digits of the app, or a recovery code."
      error={error}
      isRequired
    />
  );
}
