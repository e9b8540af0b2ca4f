import { useState } from 'react';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { Button } from '../../parts/button.js';
import { Chip } from '../../parts/chip.js';
import { Copy } from '../../parts/copy.js';
import { DialogEnd, ModalBox } from '../../parts/dialogs.js';
import { Field } from '../../parts/fields.js';
import { DialogForm, FormDialog, ShownOnce } from '../../parts/form-dialog.js';
import { Card } from '../../parts/page.js';
import { Secret } from '../../parts/secret.js';

/** An authenticator app, and the codes that stand in for it. */
export function SecondFactorCard({ factor }: { factor: Schemas['UserSecondFactor'] }) {
  const { is_set: isSet, recovery_codes: left } = factor;
  // The profile may be read again while its dialog shows the recovery codes.
  const [isSettingUp, setSettingUp] = useState(false);
  return (
    <Card
      title="Second factor"
      actions={
        isSet && !isSettingUp ? (
          <Remove />
        ) : (
          <ModalBox title="Set up an authenticator" trigger={<Button>Set up</Button>} onOpenChange={setSettingUp}>
            <SetUp />
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

function SetUp() {
  return (
    <DialogForm
      initial={{}}
      submit="Begin"
      action={() => answerOf(api.POST('/api/user/second-factor/begin', {}))}
      invalidates={[]}
      shown={(factor) => <Confirm factor={factor} />}
    >
      {() => <p>You get a secret for your app, then enter a code that the app shows.</p>}
    </DialogForm>
  );
}

function Confirm({ factor: { secret, uri } }: { factor: Schemas['NewSecondFactor'] }) {
  return (
    <DialogForm
      initial={{ code: '' }}
      submit="Confirm"
      action={({ code }) => answerOf(api.POST('/api/user/second-factor/confirm', { body: { code: code.trim() } }))}
      invalidates={['sessions', 'profile']}
      done="The second factor is set up."
      shown={({ recovery_codes }) => <RecoveryCodes codes={recovery_codes} />}
    >
      {({ field }) => (
        <>
          <Secret label="The secret for your app" value={secret} />
          <p>
            <a href={uri}>Open it in an app of this device</a>
          </p>
          <CodeField {...field('code')} hint="Six digits of the app." />
        </>
      )}
    </DialogForm>
  );
}

function RecoveryCodes({ codes }: { codes: readonly string[] }) {
  return (
    <>
      <ShownOnce />
      <p>Each of these codes replaces the app once. They are shown only once: store them before you close this.</p>
      <ul className="columns">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <DialogEnd label="Done" kind="primary">
        <Copy name="The codes" label="Copy them" value={codes.join('\n')} />
      </DialogEnd>
    </>
  );
}

function Remove() {
  return (
    <FormDialog
      title="Remove the authenticator"
      trigger={<Button kind="danger">Remove</Button>}
      initial={{ code: '' }}
      submit="Remove"
      kind="danger"
      action={({ code }) => answerOf(api.DELETE('/api/user/second-factor', { body: { code: code.trim() } }))}
      invalidates={['profile']}
      done="The second factor was removed."
    >
      {({ field }) => <CodeField {...field('code')} hint="Six digits from the app, or a recovery code." />}
    </FormDialog>
  );
}

function CodeField(field: {
  value: string;
  onChange: (code: string) => void;
  error: string | undefined;
  hint: string;
}) {
  return <Field label="Code" {...field} autoComplete="one-time-code" isRequired />;
}
